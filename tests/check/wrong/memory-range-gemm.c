// B has 3 columns, and the product is to use 4 of them. A GPU reads what comes after it,
// or stops.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: cublasSgemm runs past the end of its buffer
//
// expect: rank @any on @host: cublasSgemm at @gemm, 32 bytes from byte 0 of a buffer of
//     24 bytes
//
// expect: the buffer: device memory made at @made
#include "../check.h"

#include <cublas_v2.h>

int main(void) {
    start();
    cublasHandle_t blas;
    const float one = 1, none = 0;
#ifdef FIXED
    const int columns = 3;
#else
    const int columns = 4;
#endif
    float host[] = {1, 1, 1, 1, 1, 1, 0, 0}, *a, *b, *c;
    MUST(cudaMalloc((void **)&a, sizeof host));
    MUST(cudaMalloc((void **)&b, 6 * sizeof *host)); // @made
    MUST(cudaMalloc((void **)&c, sizeof host));
    MUST(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(b, host, 6 * sizeof *host, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    // @gemm
    MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, columns, 2, &one, a, 2, b, 2,
                     &none, c, 2));
    MUST(cudaMemcpyAsync(host, c, 6 * sizeof *host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < 6; i++)
        EXPECT(host[i], 2);
    MUST(cublasDestroy(blas));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
    finish();
    return 0;
}
