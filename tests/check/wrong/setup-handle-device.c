// One handle of cuBLAS for two devices. "The device associated with a particular cuBLAS
// context is assumed to remain unchanged between the corresponding cublasCreate() and
// cublasDestroy() calls" (cuBLAS, "cuBLAS Context").
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: setup: the stream of cublasSscal belongs to another device than its
//     handle
// expect: rank @any on @host: cublasSscal at @scale
// expect: made at @stream
// expect: made by cublasCreate at @handle
#include "../check.h"

#include <cublas_v2.h>

int main(void) {
    start();
    const float two = 2;
    float *x, host[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int devices, device;
    cudaStream_t other;
    cublasHandle_t blas;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaGetDevice(&device));
#ifndef FIXED
    MUST(cublasCreate(&blas)); // @handle
#endif
    MUST(cudaSetDevice((device + 1) % devices));
#ifdef FIXED
    MUST(cublasCreate(&blas));
#endif
    MUST(cudaStreamCreate(&other)); // @stream
    MUST(cublasSetStream(blas, other));
    MUST(cudaMalloc((void **)&x, sizeof host));
    MUST(cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, other));
    MUST(cublasSscal(blas, 8, &two, x, 1)); // @scale
    MUST(cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, other));
    MUST(cudaStreamSynchronize(other));
    for (int i = 0; i < 8; i++)
        EXPECT(host[i], 2);
    MUST(cublasDestroy(blas));
    MUST(cudaFree(x));
    MUST(cudaStreamDestroy(other));
    MUST(cudaSetDevice(device));
    finish();
    return 0;
}
