// 16.2 A thread for each GPU (repair)
// make exercise N=16.2

/*
 * "We gave each GPU a thread of its own. With one GPU all is well, with three NCCL says
 * something about memory."
 *
 * Each thread calls this function with its device and that device's communicator.
 * `values` has `count` floats on the host; they become the sum over all devices. Repair
 * it.
 */
#include "lesson.h"

void sum_of_threads(int device, ncclComm_t comm, float *values, size_t count) {
    const size_t bytes = count * sizeof(float);
    float *buffer;
    cudaStream_t stream;
    (void)device;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&buffer, bytes));
    CHECK_CUDA(cudaMemcpyAsync(buffer, values, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(values, buffer, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaFree(buffer));
    CHECK_CUDA(cudaStreamDestroy(stream));
}
