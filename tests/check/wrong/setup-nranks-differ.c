// Rank 1 counts one rank more than the others. The real NCCL hangs in the set-up.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: setup: the ranks do not agree on how many they are
// expect: rank ... on @host: ncclCommInitRank(rank ... of @n ranks, GPU ...) at @init
// expect: rank 1 on @host: ncclCommInitRank(rank 1 of @more ranks, GPU 1) at @init
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#ifdef FIXED
    int size = nranks;
#else
    int size = rank == 1 ? nranks + 1 : nranks;
#endif
    MUST(ncclCommInitRank(&comm, size, id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
