// The host puts the next values into sendbuff while the collective that sends the last
// ones is still queued. On a GPU some ranks get a mixture.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: a buffer is used while a queued operation still uses it
// expect: rank @any on @host: cudaMemcpy at @memcpy writes what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce reads
#include "../check.h"

int main(void) {
    start();
    int *sendbuff = device_ints(4, rank);
    int *recvbuff = device_ints(4, 0);
    int next[4] = {1, 2, 3, 4};
    // @allreduce
    MUST(ncclAllReduce(sendbuff, recvbuff, 4, ncclInt32, ncclSum, comm, stream));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(cudaMemcpy(sendbuff, next, sizeof next, cudaMemcpyHostToDevice)); // @memcpy
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(recvbuff, 4, sum_of_ranks());
    MUST(cudaFree(sendbuff));
    MUST(cudaFree(recvbuff));
    finish();
    return 0;
}
