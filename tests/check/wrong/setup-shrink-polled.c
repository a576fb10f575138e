// The communicator does not block: the ranks ask again and again whether it has shrunk.
// It never has, for they do not agree which rank is to be left out.
//
// rank: 1
// alone: hangs
// ranks: 3 4
// timeout: 1
// expect: NCCL CHECK: setup: the ranks do not leave out the same ranks
// expect: rank 0 on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclCommShrink(rank 0 of ... ranks) at @shrink
// expect: rank 1 on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclCommShrink(rank ... of ... ranks) at @shrink
#include "../check.h"

int main(void) {
    start_polled();
    int last = nranks - 1, out[] = {last};
#ifndef FIXED
    if (rank == 1)
        out[0] = 0;
#endif
    if (rank != last) {
        ncclComm_t rest = NULL;
        ncclResult_t state = ncclInProgress;
        ncclCommShrink(comm, out, 1, &rest, NULL, 0); // @shrink
        while (state == ncclInProgress)
            MUST(ncclCommGetAsyncError(comm, &state)); // @asks
        MUST(state);
        MUST(ncclCommAbort(rest));
    }
    finish_polled();
    return 0;
}
