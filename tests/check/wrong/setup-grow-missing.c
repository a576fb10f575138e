// A communicator of all ranks but the last grows by that one, and rank 1 goes on with the
// old one instead: everybody who calls ncclCommGrow waits for it.
// rank: 1
// alone: hangs
// ranks: 3 4
// expect: NCCL CHECK: setup: ncclCommGrow waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommGrow(rank 0 of @n ranks) at @grow
// expect: rank 1 on @host: waits in MPI_Barrier at @barrier
// expect: rank @last on @host: waits in ncclCommGrow(rank @last of @n ranks) at @join
#include "../check.h"

int main(void) {
    start();
    int newest = nranks - 1;
    ncclUniqueId id, *own = rank == 0 ? &id : NULL; // the others pass none
    ncclComm_t old = all_but_last(&id), grown = NULL;
    if (rank == newest)
        MUST(ncclCommGrow(NULL, nranks, &id, rank, &grown, NULL)); // @join
#ifndef FIXED
    else if (rank != 1)
#else
    else
#endif
        MUST(ncclCommGrow(old, nranks, own, -1, &grown, NULL)); // @grow
    MPI_Barrier(MPI_COMM_WORLD);                                // @barrier
    use_comm(grown);
    MUST(ncclCommDestroy(grown));
    if (old)
        MUST(ncclCommDestroy(old));
    finish();
    return 0;
}
