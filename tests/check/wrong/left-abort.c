// All ranks give a communicator up and go on with a second one, but rank 1 does not abort
// the first. Nobody waits on it any more, so the real NCCL says nothing.
// rank: 1
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: rank 1: 1 communicator (made at @made), which others aborted at @abort, so this
//     rank has to, too
#include "../check.h"

int main(void) {
    start();
    ncclComm_t second;
    MUST(ncclCommSplit(comm, 0, rank, &second, NULL)); // @made
#ifndef FIXED
    if (rank != 1)
#endif
        MUST(ncclCommAbort(second)); // @abort
    use_comm(comm);
    finish();
    return 0;
}
