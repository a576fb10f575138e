// ncclGroupEnd is forgotten. Calls inside a group start at its end, so the real NCCL
// never starts them: the synchronisation returns at once and the data is the old one.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: setup: a group was started and not ended
// expect: rank @any on @host: ncclGroupStart at @group, still open
//     ...cudaStreamSynchronize...@sync
// expect: 1 call waits in it, the first: ncclAllReduce(count 4, ncclInt32, ncclSum) at
//     @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclGroupStart());                                             // @group
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(ncclGroupEnd());
#endif
    MUST(cudaStreamSynchronize(stream)); // @sync
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
