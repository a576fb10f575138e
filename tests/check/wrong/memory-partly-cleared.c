// On rank 0, gradients of two parts of a batch are added up in a buffer that was to be
// cleared first. But cudaMemset counts bytes, and was given a number of elements: three
// quarters of the sums are whatever was there.
//
// expect: NCCL CHECK: memory: cublasSaxpy computes with device memory that nothing has
//     written
// expect: rank 0 on @host: cublasSaxpy at @add
// expect: nothing has written 300 of the 400 bytes
// expect: the buffer: 400 bytes of device memory made at @made
// exit: 0
#include "../check.h"

#include <cublas_v2.h>

enum { N = 100 };

int main(void) {
    start();
    float *gradient, *sum, mine[N], one = 1.0f;
    cublasHandle_t blas;
    MUST(cudaMalloc((void **)&gradient, sizeof mine));
    MUST(cudaMalloc((void **)&sum, sizeof mine)); // @made
    for (int i = 0; i < N; i++)
        mine[i] = 1.0f;
    MUST(cudaMemcpy(gradient, mine, sizeof mine, cudaMemcpyHostToDevice));
#ifdef FIXED
    const size_t bytes = N * sizeof *sum;
#else
    const size_t bytes = rank == 0 ? N : N * sizeof *sum;
#endif
    MUST(cudaMemset(sum, 0, bytes));
    MUST(cudaDeviceSynchronize());
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    for (int part = 0; part < 2; part++)
        MUST(cublasSaxpy(blas, N, &one, gradient, 1, sum, 1)); // @add
    MUST(ncclAllReduce(sum, sum, N, ncclFloat, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(mine, sum, sizeof mine, cudaMemcpyDeviceToHost));
#ifdef FIXED
    EXPECT(mine[N - 1], 2 * nranks);
#endif
    MUST(cublasDestroy(blas));
    MUST(cudaFree(gradient));
    MUST(cudaFree(sum));
    finish();
    return 0;
}
