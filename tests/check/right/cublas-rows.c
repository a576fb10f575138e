// Two streams write different rows of one matrix, and nothing orders them: what one of
// them writes lies between what the other does, and they share no byte. A norm that stays
// on the device is a factor of the next call, which waits for it in the stream.
#include "../check.h"

#include <cublas_v2.h>

int main(void) {
    start();
    enum { ROWS = 6, COLUMNS = 5 };
    cudaStream_t other = new_stream();
    cublasHandle_t blas;
    const float one = 1, none = 0;
    float host[ROWS * COLUMNS], *a, *b, *c, *norm;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        host[i] = 1;
    MUST(cudaMalloc((void **)&a, sizeof host));
    MUST(cudaMalloc((void **)&b, sizeof host));
    MUST(cudaMalloc((void **)&c, sizeof host));
    MUST(cudaMalloc((void **)&norm, sizeof *norm));
    MUST(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cublasCreate(&blas));
    for (int half = 0; half < 2; half++) {
        MUST(cublasSetStream(blas, half ? other : stream));
        MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, ROWS / 2, COLUMNS, 4, &one,
                         a + half * ROWS / 2, ROWS, b, 4, &none, c + half * ROWS / 2,
                         ROWS));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(other));
    MUST(cublasSetStream(blas, stream));
    MUST(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    MUST(cublasSnrm2(blas, 4, a, 1, norm));
    MUST(cublasSscal(blas, ROWS * COLUMNS, norm, c, 1));
    MUST(cudaMemcpyAsync(host, c, sizeof host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        EXPECT((int)(host[i] + 0.5f), 4 * 2); // a norm may be rounded
    MUST(cublasDestroy(blas));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
    MUST(cudaFree(norm));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
