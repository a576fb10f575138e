// Rank 1 does not take part in the set-up. The real NCCL waits for ever for it.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: setup: ncclCommInitRank waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect: rank 1 on @host: is in MPI_Finalize at @finalize
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @init
        MUST(ncclCommDestroy(comm));
    }
    MPI_Finalize(); // @finalize
    return 0;
}
