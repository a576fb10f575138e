// The communicator is suspended, so that others can have its memory, and used again
// before it is resumed.
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator that is suspended
// expect: rank @any on @host: ncclAllReduce at @call
// expect: communicator 1, made by ncclCommInitRank at ..., was suspended at @suspend
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    use_comm(comm);
    MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
#ifdef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
