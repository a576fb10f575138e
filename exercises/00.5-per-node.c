//: kind build
//: title A communicator for each node
//: trains several communicators: which ranks, which id, which number
//: setup mpi
//: build cpu
//: ranks 4 | 1 2 3 7 8
//: run 4 CPU_HOSTS=2
//: run 8 CPU_HOSTS=4:cyclic
//: starter the communicator is still NULL
//: wrong other-order s/MPI_COMM_TYPE_SHARED, rank/MPI_COMM_TYPE_SHARED, -rank/: expected
//: wrong one-id s/MPI_BYTE, 0, node/MPI_BYTE, 0, MPI_COMM_WORLD/: NCCL CHECK: setup
//: wrong world-numbers s/nlocal, id, local/nlocal, id, rank/: On 4 ranks, CPU_HOSTS=2 … ncclCommInitRank
//: wrong all-together s/CHECK_MPI\(MPI_Comm_split_type.*?;/CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &node));/s: the communicator has 4 ranks, and the node has 2
//: learned Every communicator needs an id of its own, and its ranks are numbered from 0 on.
//: why The lowest rank of each node makes an id, and only the ranks of that node get it.
//: hint You need two things of MPI: who is on my node, and a way to carry an id to just these.
//: hint MPI_Comm_split_type (MPI_COMM_TYPE_SHARED) gives both: a communicator of the node's ranks,
//:   in which MPI_Bcast reaches only them.
//: hint As in 00.1, with the node's communicator in the place of MPI_COMM_WORLD, its size in the place
//:   of nranks and the rank in it in the place of rank.
//: file

/*
 * Fast links join the GPUs of a node, slower ones the nodes. A program that wants to
 * treat them differently makes a communicator of the ranks of its own node.
 *
 * Make it. In it the ranks of the node keep their order and are numbered from 0 on. MPI
 * has been started, and every rank has its GPU. ncclCommSplit does not help here: there
 * is no communicator of all ranks yet.
 */
#include "lesson.h"

ncclComm_t join_node(void) {
    ncclComm_t comm = NULL;
    //: starter
    // Yours: about eight lines.
    //: solution
    MPI_Comm node;
    int rank, local, nlocal;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                                  MPI_INFO_NULL, &node));
    CHECK_MPI(MPI_Comm_rank(node, &local));
    CHECK_MPI(MPI_Comm_size(node, &nlocal));
    ncclUniqueId id;
    if (local == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, node));
    CHECK_NCCL(ncclCommInitRank(&comm, nlocal, id, local));
    CHECK_MPI(MPI_Comm_free(&node));
    //: end
    return comm;
}
//: check
ncclComm_t join_node(void);

void check(void) {
    MPI_Comm node;
    int ndevices, local, nlocal, members, number;
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, check_rank,
                                  MPI_INFO_NULL, &node));
    CHECK_MPI(MPI_Comm_rank(node, &local));
    CHECK_MPI(MPI_Comm_size(node, &nlocal));
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(local % ndevices));
    ncclComm_t comm = join_node();
    if (!check_that(comm != NULL, "the communicator is still NULL"))
        return;
    CHECK_NCCL(ncclCommCount(comm, &members));
    CHECK_NCCL(ncclCommUserRank(comm, &number));
    check_that(members == nlocal, "the communicator has %d ranks, and the node has %d",
               members, nlocal);
    check_that(number == local, "the communicator calls this rank %d, expected %d",
               number, local);
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Comm_free(&node));
}
