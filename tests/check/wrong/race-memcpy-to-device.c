// cudaMemcpy from ordinary memory, in the default stream, and the collective in a
// non-blocking one. The call returns when the data has left the host: on a GPU it may not
// have arrived, and the collective sends what was there before.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: cudaMemcpy can return before the data is there
// expect: rank @any on @host: cudaMemcpy at @copy writes what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce reads, and nothing
//     makes one wait for the other
// expect: ends with exit code 1
#include "../check.h"

int main(void) {
    start();
    const int ones[4] = {1, 1, 1, 1};
    int *sendbuff = device_ints(4, 0), *recvbuff = device_ints(4, 0);
#ifdef FIXED
    MUST(cudaMemcpyAsync(sendbuff, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
#else
    // @copy
    MUST(cudaMemcpy(sendbuff, ones, sizeof ones, cudaMemcpyHostToDevice));
#endif
    // @allreduce
    MUST(ncclAllReduce(sendbuff, recvbuff, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(recvbuff, 4, nranks);
    MUST(cudaFree(sendbuff));
    MUST(cudaFree(recvbuff));
    finish();
    return 0;
}
