// A buffer is made while another device is set than the one of the communicator.
// rank: all
// alone: a call returns 700
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce lies on another device than the
//     communicator
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum
// expect: the buffer: 16 bytes of memory of device @any made at
#include "../check.h"

int main(void) {
    start();
    int devices, device;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaGetDevice(&device));
#ifndef FIXED
    MUST(cudaSetDevice((device + 1) % devices));
#endif
    int *buf = device_ints(4, rank);
    MUST(cudaSetDevice(device));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @sum
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
