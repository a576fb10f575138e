// Two halves make a communicator each, with a unique id of their own, and both say how
// many ranks the whole job has.
//
// rank: all
// alone: hangs
// ranks: 4 8
// expect: NCCL CHECK: setup: ncclCommInitRank waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect 4: Hint: only ranks 0 to 1 come with each unique id. Is nranks that of another
#include "../check.h"

int main(void) {
    MPI_Comm half;
    int part, nhalf;
    start_mpi();
    start_device();
    MPI_Comm_split(MPI_COMM_WORLD, rank / (nranks / 2), rank, &half);
    MPI_Comm_rank(half, &part);
    MPI_Comm_size(half, &nhalf);
    ncclUniqueId id;
    if (part == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, half);
    int n = nranks;
#ifdef FIXED
    n = nhalf;
#endif
    MUST(ncclCommInitRank(&comm, n, id, part)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
