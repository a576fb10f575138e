// Another stream clears sendbuff while the collective may still be reading it: nothing
// orders the two streams. On a GPU some ranks sum zeros.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank @any on @host: cudaMemsetAsync at @memset writes what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce reads
#include "../check.h"

int main(void) {
    start();
    cudaStream_t other = new_stream();
    int *sendbuff = device_ints(4, rank);
    int *recvbuff = device_ints(4, 0);
    // @allreduce
    MUST(ncclAllReduce(sendbuff, recvbuff, 4, ncclInt32, ncclSum, comm, stream));
#ifdef FIXED
    MUST(cudaMemsetAsync(sendbuff, 0, 4 * sizeof(int), stream));
#else
    MUST(cudaMemsetAsync(sendbuff, 0, 4 * sizeof(int), other)); // @memset
#endif
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(recvbuff, 4, sum_of_ranks());
    MUST(cudaFree(sendbuff));
    MUST(cudaFree(recvbuff));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
