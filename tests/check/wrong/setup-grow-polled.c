// A communicator of all ranks but the last grows by that one, without blocking, and rank
// 1 takes no part: the others ask for ever whether the new one is there.
//
// rank: 1
// alone: hangs
// ranks: 3 4
// timeout: 1
// expect: NCCL CHECK: setup: ncclCommGrow waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclCommGrow(rank 0 of @n ranks) at @grow
// expect: rank 1 on @host: waits in MPI_Barrier at @barrier
// expect: rank @last on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclCommGrow(rank @last of @n ranks) at @join
#include "../check.h"

int main(void) {
    start();
    int newest = nranks - 1;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id, *own = rank == 0 ? &id : NULL; // the others pass none
    ncclComm_t old = all_but_last(&id), grown = NULL;
    int comes = 1;
#ifndef FIXED
    comes = rank != 1;
#endif
    if (comes) {
        ncclResult_t state = ncclInProgress;
        if (rank == newest)
            ncclCommGrow(NULL, nranks, &id, rank, &grown, &config); // @join
        else
            ncclCommGrow(old, nranks, own, -1, &grown, &config); // @grow
        while (state == ncclInProgress)
            MUST(ncclCommGetAsyncError(grown, &state)); // @asks
        MUST(state);
    }
    MPI_Barrier(MPI_COMM_WORLD); // @barrier
    MUST(ncclCommAbort(grown));
    if (old)
        MUST(ncclCommDestroy(old));
    finish();
    return 0;
}
