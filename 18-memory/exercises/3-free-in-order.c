// 18.3 Freed on the wrong stream (repair)
// make exercise N=18.3

/*
 * "We free on a stream of its own, so that freeing holds up nothing. Now and then the
 * result is wrong."
 *
 * Repair the function. The memory must still be given back with cudaFreeAsync, and the
 * host must not wait.
 */
#include "lesson.h"

void sum_once(const float *host, float *result, size_t count, cudaStream_t summing,
              cudaStream_t housekeeping, ncclComm_t comm) {
    const size_t bytes = count * sizeof(float);
    float *buffer;
    CHECK_CUDA(cudaMallocAsync((void **)&buffer, bytes, summing));
    CHECK_CUDA(cudaMemcpyAsync(buffer, host, bytes, cudaMemcpyHostToDevice, summing));
    CHECK_NCCL(ncclAllReduce(buffer, result, count, ncclFloat32, ncclSum, comm, summing));
    CHECK_CUDA(cudaFreeAsync(buffer, housekeeping));
    (void)housekeeping;
}
