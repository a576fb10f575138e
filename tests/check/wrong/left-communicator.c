// A communicator is never destroyed. The real NCCL keeps its buffers and threads until
// the process ends, and says nothing.
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: @all: 1 communicator (made at @split)
#include "../check.h"

int main(void) {
    start();
    ncclComm_t part;
    MUST(ncclCommSplit(comm, 0, rank, &part, NULL)); // @split
#ifdef FIXED
    MUST(ncclCommDestroy(part));
#endif
    finish();
    return 0;
}
