// A flag of one byte, and after it the data: what is only moved may begin anywhere. And
// what cuBLAS works on may have some padding at its end that nothing has written.
#include "../check.h"

#include <cublas_v2.h>

enum { N = 24, PADDED = 28 };

int main(void) {
    start();
    char *one, *all;
    size_t part = N * sizeof(int);
    int sent[N], got[N], from = (rank + nranks - 1) % nranks;
    MUST(cudaMalloc((void **)&one, 1 + part));
    MUST(cudaMalloc((void **)&all, 1 + (size_t)nranks * part));
    for (int i = 0; i < N; i++)
        sent[i] = rank;
    MUST(cudaMemcpy(one + 1, sent, part, cudaMemcpyHostToDevice));
    MUST(cudaStreamSynchronize(0)); // until the data is there
    MUST(ncclAllGather(one + 1, all + 1, N, ncclInt32, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int r = 0; r < nranks; r++) {
        MUST(cudaMemcpy(got, all + 1 + (size_t)r * part, part, cudaMemcpyDeviceToHost));
        EXPECT(got[N - 1], r);
    }
    MUST(ncclGroupStart());
    MUST(ncclSend(one + 1, N, ncclInt32, (rank + 1) % nranks, comm, stream));
    MUST(ncclRecv(all + 1, N, ncclInt32, from, comm, stream));
    MUST(ncclGroupEnd());
    MUST(ncclBroadcast(one + 1, one + 1, N, ncclInt32, 0, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(got, all + 1, part, cudaMemcpyDeviceToHost));
    EXPECT(got[0], from);
    MUST(cudaMemcpy(got, one + 1, part, cudaMemcpyDeviceToHost));
    EXPECT(got[0], 0);

    float *x, *y, host[PADDED], two = 2.0f;
    cublasHandle_t blas;
    MUST(cudaMalloc((void **)&x, PADDED * sizeof *x));
    MUST(cudaMalloc((void **)&y, PADDED * sizeof *y));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    MUST(cudaMemcpy(x, host, N * sizeof *x, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(y, host, N * sizeof *y, cudaMemcpyHostToDevice));
    MUST(cublasCreate(&blas));
    MUST(cublasSaxpy(blas, PADDED, &two, x, 1, y, 1));
    MUST(cudaMemcpy(host, y, PADDED * sizeof *y, cudaMemcpyDeviceToHost));
    EXPECT(host[N - 1], 3 * (N - 1));
    MUST(cublasDestroy(blas));
    MUST(cudaFree(x));
    MUST(cudaFree(y));
    MUST(cudaFree(one));
    MUST(cudaFree(all));
    finish();
    return 0;
}
