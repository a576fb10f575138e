// A rank is to be left out, and the others do not agree which: each waits for ranks that
// call it with its own list.
// rank: 1
// alone: hangs
// ranks: 3 4
// expect: NCCL CHECK: setup: the ranks do not leave out the same ranks
// expect: rank 0 on @host: waits in ncclCommShrink(rank 0 of ... ranks) at @shrink
// expect: rank 1 on @host: waits in ncclCommShrink(rank ... of ... ranks) at @shrink
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    int last = nranks - 1, out[] = {last, last};
    ncclComm_t rest;
#ifndef FIXED
    if (rank == 1)
        out[0] = 0;
#endif
    if (rank != last) {
        MUST(ncclCommShrink(comm, out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT)); // @shrink
        MUST(ncclCommDestroy(rest));
    }
    finish();
    return 0;
}
