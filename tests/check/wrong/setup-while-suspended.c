// A communicator is used after ncclCommSuspend and before ncclCommResume. "The
// communicator cannot be used for any NCCL operations while suspended" (NCCL User Guide).
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator after it was suspended
// expect: communicator 1, made by ncclCommInitRank at ..., was suspended at @suspend
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
#ifdef FIXED
    MUST(ncclCommResume(comm));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
#else
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(ncclCommResume(comm));
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
