// The second collective of a group needs what the first one writes. A group starts its
// calls together, so the real NCCL may broadcast before it has summed.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: two calls of one group use the same memory
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: ncclBroadcast(count 4, ncclInt32, root 0) at @broadcast
// expect: 16 bytes of device memory
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
#endif
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream)); // @broadcast
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
