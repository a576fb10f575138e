// Rank 1 takes no part in ncclCommSplit because it wants no new communicator. It has to
// call it all the same, with NCCL_SPLIT_NOCOLOR. The real NCCL waits, and fails when rank
// 1 has ended.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclCommSplit
// expect: rank 0 on @host: ...ncclCommSplit... at @split, operation 1 on
//     communicator 1; rank 1 has not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish
#include "../check.h"

int main(void) {
    start();
    ncclComm_t part = NULL;
#ifdef FIXED
    int color = rank == 1 ? NCCL_SPLIT_NOCOLOR : 0;
    MUST(ncclCommSplit(comm, color, rank, &part, NULL));
#else
    if (rank != 1) {
        MUST(ncclCommSplit(comm, 0, rank, &part, NULL)); // @split
    }
#endif
    if (part != NULL) {
        MUST(ncclCommDestroy(part));
    }
    finish();
    return 0;
}
