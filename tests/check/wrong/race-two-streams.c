// One stream sums into the buffer, another one copies it away, and no event orders them.
// On a GPU the copy is of the old data, or half of the new.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank @any on @host: cudaMemcpyAsync at @copy reads what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce writes
#include "../check.h"

int main(void) {
    start();
    cudaStream_t other = new_stream();
    cudaEvent_t summed;
    MUST(cudaEventCreate(&summed));
    int *buf = device_ints(4, rank);
    int *copy = device_ints(4, 0);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaEventRecord(summed, stream));
#ifdef FIXED
    MUST(cudaStreamWaitEvent(other, summed, 0));
#endif
    // @copy
    MUST(cudaMemcpyAsync(copy, buf, 4 * sizeof(int), cudaMemcpyDeviceToDevice, other));
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(copy, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaFree(copy));
    MUST(cudaEventDestroy(summed));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
