// A communicator is used between ncclCommSuspend and ncclCommResume. "The communicator
// cannot be used while suspended" (nccl.h).
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator while it is suspended
// expect: rank @any on @host: ncclAllReduce at @call
// expect: communicator 1 was suspended by ncclCommSuspend at @suspend
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
#ifdef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
#ifndef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
