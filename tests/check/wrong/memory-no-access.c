// A vector of the next device is added to one of the own. Kernels of a device may use the
// memory of another one only after cudaDeviceEnablePeerAccess. It gives access in one
// direction, and here that is the other one.
// rank: all
// alone: a call returns 700
// expect: NCCL CHECK: memory: cublasSaxpy reads memory of a device that its own has no
//     access to
// expect: rank @any on @host: cublasSaxpy at @add, on a stream of device @any
// expect: the buffer: 32 bytes of memory of device @any made at @made
// expect: cudaDeviceEnablePeerAccess gives access to its memory, in one direction
#include "../check.h"

#include <cublas_v2.h>

int main(void) {
    start();
    const float one = 1;
    float *own, *others, host[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int devices, device;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaGetDevice(&device));
    const int next = (device + 1) % devices;
    MUST(cudaMalloc((void **)&own, sizeof host));
    MUST(cudaMemcpy(own, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(next));
    MUST(cudaMalloc((void **)&others, sizeof host)); // @made
    MUST(cudaMemcpy(others, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
#ifdef FIXED
    MUST(cudaSetDevice(device));
    MUST(cudaDeviceEnablePeerAccess(next, 0));
#else
    MUST(cudaDeviceEnablePeerAccess(device, 0));
    MUST(cudaSetDevice(device));
#endif
    cublasHandle_t blas;
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    MUST(cublasSaxpy(blas, 8, &one, others, 1, own, 1)); // @add
    MUST(cudaMemcpyAsync(host, own, sizeof host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < 8; i++)
        EXPECT(host[i], 2);
    MUST(cublasDestroy(blas));
    MUST(cudaFree(own));
    MUST(cudaFree(others));
    finish();
    return 0;
}
