// The communicator does not block, and the ranks ask again and again whether their split
// is done. The last rank takes no part in it.
//
// rank: 1
// alone: hangs
// timeout: 1
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclCommGetAsyncError at @asks,
//     operation 1 on communicator 1; rank @last has not begun this operation
// expect: rank @last on @host: waits in MPI_Barrier at @barrier
#include "../check.h"

int main(void) {
    start_polled();
    int comes = 1;
#ifndef FIXED
    comes = rank != nranks - 1;
#endif
    ncclComm_t part = NULL;
    if (comes) {
        ncclResult_t state = ncclInProgress;
        ncclCommSplit(comm, rank % 2, rank, &part, NULL);
        while (state == ncclInProgress)
            MUST(ncclCommGetAsyncError(comm, &state)); // @asks
        MUST(state);
    }
    MPI_Barrier(MPI_COMM_WORLD); // @barrier
    MUST(ncclCommAbort(part));
    finish_polled();
    return 0;
}
