// A copy to the device names the wrong direction. It fails, nobody looks, and what the
// ranks add up is memory that nothing has written.
//
// rank: all
// alone: wrong data
// expect: NCCL CHECK: note: rank @any: cudaMemcpy at @copy returned
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is device memory that nothing has
// expect: 1 call returned an error: cudaMemcpy at @copy
#include "../check.h"

#ifdef FIXED
#define DIRECTION cudaMemcpyHostToDevice
#else
#define DIRECTION cudaMemcpyDeviceToHost
#endif

int main(void) {
    start();
    int *buf, numbers[4] = {rank, rank, rank, rank};
    MUST(cudaMalloc((void **)&buf, sizeof numbers));
    cudaMemcpy(buf, numbers, sizeof numbers, DIRECTION); // @copy
    MUST(cudaStreamSynchronize(0));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
