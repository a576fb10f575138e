// The momentum of an optimizer is made with cudaMalloc and never set to 0. What comes of
// it goes into the weights.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: cublasSaxpy reads device memory that nothing has written
// expect: rank @any on @host: cublasSaxpy at @step
// expect: made at @made
#include "../check.h"

#include <cublas_v2.h>

enum { N = 100 };

int main(void) {
    start();
    float *gradient, *momentum, *weights, mine[N], half = 0.5f, one = 1.0f;
    MUST(cudaMalloc((void **)&gradient, sizeof mine));
    MUST(cudaMalloc((void **)&weights, sizeof mine));
    MUST(cudaMalloc((void **)&momentum, sizeof mine)); // @made
    for (int i = 0; i < N; i++)
        mine[i] = 1.0f;
    MUST(cudaMemcpy(gradient, mine, sizeof mine, cudaMemcpyHostToDevice));
    MUST(cudaMemset(weights, 0, sizeof mine));
#ifdef FIXED
    MUST(cudaMemset(momentum, 0, sizeof mine));
#endif
    MUST(cudaDeviceSynchronize());
    cublasHandle_t blas;
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    for (int step = 0; step < 2; step++) {
        MUST(ncclAllReduce(gradient, gradient, N, ncclFloat, ncclMax, comm, stream));
        MUST(cublasSscal(blas, N, &half, momentum, 1));
        MUST(cublasSaxpy(blas, N, &one, gradient, 1, momentum, 1));
        MUST(cublasSaxpy(blas, N, &one, momentum, 1, weights, 1)); // @step
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(mine, weights, sizeof mine, cudaMemcpyDeviceToHost));
    EXPECT(mine[N - 1] == 2.5f, 1);
    MUST(cublasDestroy(blas));
    MUST(cudaFree(gradient));
    MUST(cudaFree(momentum));
    MUST(cudaFree(weights));
    finish();
    return 0;
}
