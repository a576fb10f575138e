// 25.4 One kernel instead of three (fast)
// make exercise N=25.4

/*
 * After an all-reduce three kernels work on the sums: the mean, what is below 0 becomes
 * 0, then a scale (which may be negative).
 *
 * Make it fast: at most two thirds of what it takes now. Don't wait: the caller does.
 */
#include "lesson.h"

__global__ void divide(float *x, size_t count, float nranks) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] /= nranks;
}
__global__ void clip(float *x, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = fmaxf(x[i], 0);
}
__global__ void multiply(float *x, size_t count, float scale) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] *= scale;
}

extern "C" void finish(float *x, size_t count, int nranks, float scale, ncclComm_t comm,
                       cudaStream_t stream) {
    const unsigned blocks = (unsigned)((count + 255) / 256);
    CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat32, ncclSum, comm, stream));
    divide<<<blocks, 256, 0, stream>>>(x, count, (float)nranks);
    clip<<<blocks, 256, 0, stream>>>(x, count);
    multiply<<<blocks, 256, 0, stream>>>(x, count, scale);
    CHECK_CUDA(cudaGetLastError());
}
