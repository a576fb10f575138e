// The ranks give NCCL's memory back for a while, and rank 1 does not: the others wait for
// it.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclCommSuspend, operation 2 on communicator 1, waits
//     for ranks that never come
// expect: rank 0 on @host: waits in ncclCommSuspend at @suspend, operation 2 on
//     communicator 1; rank 1 has not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 1 operation on
//     the communicator
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
        MUST(ncclCommResume(comm));
    }
    finish();
    return 0;
}
