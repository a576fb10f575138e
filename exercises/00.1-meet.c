//: kind complete
//: title One communicator for all
//: trains the unique id: one rank makes it, all need it
//: setup mpi
//: ranks 2 4 | 1 3 7 8
//: starter the communicator is still NULL
//: learned NCCL doesn't carry the id: one rank makes it, and the program brings all of it to the others.
//: why All ranks come to ncclCommInitRank with the same id, and each with its own number.
//: hint Three steps: make the id on one rank, carry it, join. The lesson shows them in this order.
//: hint An id is sizeof(ncclUniqueId) bytes and no string: MPI_Bcast with MPI_BYTE.
//: hint if (rank == 0) ncclGetUniqueId(&id); MPI_Bcast(&id, sizeof id, MPI_BYTE, 0,
//:   MPI_COMM_WORLD); and ncclCommInitRank(&comm, nranks, id, rank), each in its CHECK_….
//: file

/*
 * Make one communicator of all ranks. Each rank keeps its number: rank 2 of MPI is rank 2
 * of the communicator. MPI has been started, and the GPU has been chosen.
 */
#include "lesson.h"

ncclComm_t join(int rank, int nranks) {
    ncclComm_t comm = NULL;
    //: starter
    // Make a unique id, bring it to all ranks, and join with it.
    //: solution
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong every-rank: the ranks do not give the same unique id
    ncclUniqueId id;
    CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong eight-bytes: the ranks do not give the same unique id
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof(void *), MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong turned-round: the communicator calls this rank
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, nranks - 1 - rank));
    //: wrong alone: the communicator has 1 rank
    ncclUniqueId id;
    CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
    //: end
    return comm;
}
//: check
ncclComm_t join(int rank, int nranks);

void check(void) {
    int ndevices, members, number;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(check_rank % ndevices));
    ncclComm_t comm = join(check_rank, check_nranks);
    if (!check_that(comm != NULL, "the communicator is still NULL"))
        return;
    CHECK_NCCL(ncclCommCount(comm, &members));
    CHECK_NCCL(ncclCommUserRank(comm, &number));
    check_that(members == check_nranks, "the communicator has %d rank%s, expected %d",
               members, members == 1 ? "" : "s", check_nranks);
    check_that(number == check_rank, "the communicator calls this rank %d", number);
    CHECK_NCCL(ncclCommDestroy(comm));
}
