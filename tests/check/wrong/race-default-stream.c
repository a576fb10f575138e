// The collective is in the default stream, the copy of its result in a non-blocking one,
// which does not wait for it. On a GPU the copy is of the old data, or half of the new.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank @any on @host: cudaMemcpyAsync at @copy reads what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce writes
// expect: Hint: cudaEventRecord on the one stream, cudaStreamWaitEvent on the other.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1), *copy = device_ints(4, 0);
    const size_t bytes = 4 * sizeof(int);
    cudaEvent_t summed;
    MUST(cudaEventCreate(&summed));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, 0)); // @allreduce
    MUST(cudaEventRecord(summed, 0));
#ifdef FIXED
    MUST(cudaStreamWaitEvent(stream, summed, 0));
#endif
    // @copy
    MUST(cudaMemcpyAsync(copy, buf, bytes, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(copy, 4, nranks);
    MUST(cudaEventDestroy(summed));
    MUST(cudaFree(buf));
    MUST(cudaFree(copy));
    finish();
    return 0;
}
