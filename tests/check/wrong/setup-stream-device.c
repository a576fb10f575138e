// The stream is made while another device is set than the one of the communicator.
// rank: all
// alone: a call returns 1
// expect: NCCL CHECK: setup: the stream of ncclAllReduce belongs to another device than
//     the communicator
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum
// expect: the stream: on device @any, made at @stream
#include "../check.h"

int main(void) {
    start();
    int devices, device, *buf = device_ints(4, rank);
    cudaStream_t own;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaGetDevice(&device));
#ifndef FIXED
    MUST(cudaSetDevice((device + 1) % devices));
#endif
    MUST(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking)); // @stream
    MUST(cudaSetDevice(device));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, own)); // @sum
    MUST(cudaStreamSynchronize(own));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(own));
    finish();
    return 0;
}
