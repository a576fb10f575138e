// The program rounds upwards, takes denormals for zero, and has itself stopped where
// something is no number. None of that is a GPU's affair.
#define _GNU_SOURCE
#include "../check.h"

#include <cublas_v2.h>
#include <fenv.h>
#include <float.h>
#include <math.h>

enum { COUNT = 4 };

int main(void) {
    // 1 + 2^-26 is 1, to the nearest; smaller than any normal number; infinite; not a
    // number.
    const float first[COUNT] = {1, FLT_MIN / 2, INFINITY, INFINITY},
                last[COUNT] = {0x1p-26f, FLT_MIN / 4, 1, -INFINITY};
    float sums[COUNT], *buf, *more;
    const float one = 1;
    fenv_t before;
    cublasHandle_t blas;
    start();
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    MUST(cudaMalloc((void **)&buf, sizeof sums));
    MUST(cudaMalloc((void **)&more, sizeof sums));
    for (int round = 0; round < 2; round++) {
        // The others bring zeros.
        const float none[COUNT] = {0};
        const float *mine = rank == 0 ? first : rank == nranks - 1 ? last : none;
        fegetenv(&before);
        fesetround(FE_UPWARD);
        feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#ifdef __SSE__
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); // FTZ, DAZ
#endif
        MUST(cudaMemcpyAsync(buf, round ? first : mine, sizeof sums,
                             cudaMemcpyHostToDevice, stream));
        MUST(cudaMemcpyAsync(more, last, sizeof sums, cudaMemcpyHostToDevice, stream));
        if (round == 0)
            MUST(ncclAllReduce(buf, buf, COUNT, ncclFloat32, ncclSum, comm, stream));
        else
            MUST(cublasSaxpy(blas, COUNT, &one, more, 1, buf, 1));
        MUST(cudaMemcpyAsync(sums, buf, sizeof sums, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT(fegetround(), FE_UPWARD);
        fesetenv(&before);
        if (nranks == 1 && round == 0)
            continue;
        EXPECT(sums[0] == 1, 1);
        EXPECT(sums[1] == 3 * (FLT_MIN / 4), 1);
        EXPECT(isinf(sums[2]) != 0, 1);
        EXPECT(isnan(sums[3]) != 0, 1);
    }
    MUST(cublasDestroy(blas));
    MUST(cudaFree(buf));
    MUST(cudaFree(more));
    finish();
    return 0;
}
