// cudaMemset works on the default stream and returns before it is done, and a
// non-blocking stream does not wait for it. On a GPU the collective may send what was
// there before.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: cudaMemset can return before the data is there
// expect: rank @any on @host: cudaMemset at @memset writes what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce reads, and nothing
//     makes one wait for the other
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    MUST(cudaMemsetAsync(buf, 0, 16, stream));
#else
    MUST(cudaMemset(buf, 0, 16)); // @memset
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
