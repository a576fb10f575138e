/*
 * cuBLAS for more than floats, against sums made one by one: doubles, halves, many
 * products in one call, places; with whole numbers, so that every result is exact.
 */
#define TAP_ALONE
#include "tap.h"

#include <cublas_v2.h>

#define BLAS(call) is_status(call, #call, __LINE__)

static void is_status(cublasStatus_t got, const char *call, int line) {
    expect(got == CUBLAS_STATUS_SUCCESS, "line %d: %s returned %s", line, call,
           cublasGetStatusName(got));
}

enum { M = 40, N = 33, K = 37, BATCH = 3, ROOM = BATCH * 64 * 64 };
static cublasHandle_t handle;
static double a[ROOM], b[ROOM], c[ROOM], got[ROOM];
static void *device[3];

static unsigned state = 1;
static double number(void) {
    state = state * 1664525u + 1013904223u;
    return (double)((int)(state >> 16 & 7) - 4);
}

static void fill(void) {
    double *all[] = {a, b, c};
    for (int w = 0; w < 3; w++) {
        for (int i = 0; i < ROOM; i++)
            all[w][i] = number();
        BLAS(cublasSetVector(ROOM, sizeof(double), all[w], 1, device[w], 1));
    }
}

static void fetch(int which) {
    BLAS(cublasGetVector(ROOM, sizeof(double), device[which], 1, got, 1));
}

static double of(const double *at, bool transposed, int ld, int i, int j) {
    return transposed ? at[j + i * ld] : at[i + j * ld];
}

/* c = 2 * op(a) * op(b) - c, from these elements on. */
static void check_product(bool ta, bool tb, int lda, int ldb, int ldc, int from,
                          const char *what) {
    int wrong = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += of(a + from, ta, lda, i, k) * of(b + from, tb, ldb, k, j);
            wrong += got[from + i + j * ldc] != 2 * sum - c[from + i + j * ldc];
        }
    expect(wrong == 0, "%s: %d elements are wrong", what, wrong);
}

static void products(void) {
    const double two = 2, less = -1;
    for (int t = 0; t < 4; t++) {
        bool ta = t & 1, tb = t & 2;
        int lda = ta ? K + 1 : M + 2, ldb = tb ? N + 3 : K;
        fill();
        BLAS(cublasDgemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                         tb ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, &two, device[0], lda,
                         device[1], ldb, &less, device[2], M + 1));
        fetch(2);
        check_product(ta, tb, lda, ldb, M + 1, 0, "Dgemm");
    }
    point("products of doubles, transposed or not");
    fill();
    BLAS(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &two,
                                    device[0], CUDA_R_64F, M, 4096, device[1], CUDA_R_64F,
                                    K, 4096, &less, device[2], CUDA_R_64F, M, 4096, BATCH,
                                    CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
    fetch(2);
    for (int i = 0; i < BATCH; i++)
        check_product(false, false, M, K, M, 4096 * i, "strided");
    point("many products in one call");
}

/* Halves of whole numbers: -4 to 3 are exact, and so are their sums up to 2048. */
static unsigned short half_of(double x) {
    static const unsigned short small[] = {0xc400, 0xc200, 0xc000, 0xbc00,
                                           0,      0x3c00, 0x4000, 0x4200};
    return small[(int)x + 4];
}

static double value_of(unsigned short half) {
    double value = half >> 10 & 31 ? 1024 + (half & 1023) : 0;
    for (int e = half >> 10 & 31; e < 25; e++)
        value /= 2;
    for (int e = half >> 10 & 31; e > 25; e--)
        value *= 2;
    return half >> 15 ? -value : value;
}

static void halves(void) {
    enum { S = 8 };
    const float one = 1, zero = 0;
    unsigned short x[S * S], y[S * S];
    float z[S * S];
    fill();
    for (int i = 0; i < S * S; i++) {
        x[i] = half_of(a[i]);
        y[i] = half_of(b[i]);
    }
    BLAS(cublasSetMatrix(S, S, 2, x, S, device[0], S));
    BLAS(cublasSetMatrix(S, S, 2, y, S, device[1], S));
    BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S, &one, device[0],
                      CUDA_R_16F, S, device[1], CUDA_R_16F, S, &zero, device[2],
                      CUDA_R_32F, S, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    BLAS(cublasGetMatrix(S, S, 4, device[2], S, z, S));
    int wrong = 0;
    for (int j = 0; j < S; j++)
        for (int i = 0; i < S; i++) {
            double sum = 0;
            for (int k = 0; k < S; k++)
                sum += a[i + k * S] * b[j + k * S];
            wrong += z[i + j * S] != (float)sum;
        }
    expect(wrong == 0, "%d elements are wrong", wrong);
    point("a product of halves into floats");

    // The same into halves.
    const unsigned short one_half = 0x3c00, none = 0;
    BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S, &one_half, device[0],
                      CUDA_R_16F, S, device[1], CUDA_R_16F, S, &none, device[2],
                      CUDA_R_16F, S, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT));
    BLAS(cublasGetMatrix(S, S, 2, device[2], S, x, S));
    wrong = 0;
    for (int i = 0; i < S * S; i++)
        wrong += value_of(x[i]) != z[i];
    expect(wrong == 0, "%d halves are wrong", wrong);
    expect(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S, &one, device[0],
                        (cudaDataType)99, S, device[1], CUDA_R_16F, S, &zero, device[2],
                        CUDA_R_32F, S, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED,
           "a type that is not here");
    point("a product of halves into halves");
}

static void vectors(void) {
    const double three = 3, two = 2;
    double sum = 0, largest = 0, result;
    int place = 0, found;
    fill();
    for (int i = 0; i < 100; i++) {
        double size = a[i] < 0 ? -a[i] : a[i];
        sum += a[2 * i] * b[i];
        place = size > largest ? i + 1 : place;
        largest = size > largest ? size : largest;
    }
    BLAS(cublasDdot(handle, 100, device[0], 2, device[1], 1, &result));
    expect(result == sum, "dot: %g, not %g", result, sum);
    BLAS(cublasIdamax(handle, 100, device[0], 1, &found));
    expect(found == place, "amax: %d, not %d", found, place);
    BLAS(cublasDnrm2(handle, 100, device[0], 1, &result));
    BLAS(cublasDdot(handle, 100, device[0], 1, device[0], 1, &sum));
    expect(result * result - sum < 1e-9 && sum - result * result < 1e-9, "nrm2: %g",
           result);
    BLAS(cublasDaxpy(handle, 100, &three, device[0], 1, device[1], 1));
    BLAS(cublasDscal(handle, 100, &two, device[1], 1));
    BLAS(cublasDcopy(handle, 100, device[1], 1, device[2], -1));
    fetch(2);
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += got[99 - i] != 2 * (b[i] + 3 * a[i]);
    expect(wrong == 0, "axpy, scal, copy: %d elements are wrong", wrong);
    point("vectors of doubles");
}

/* A times x, and its transpose times x, which starts at the far end. */
static void matrix_times_vector(void) {
    enum { ROWS = 5, COLUMNS = 3 };
    float A[ROWS * COLUMNS], x[ROWS], y[ROWS], is[ROWS];
    const float two = 2, less = -1;
    for (int t = 0; t < 2; t++) {
        int rows = t ? COLUMNS : ROWS, columns = t ? ROWS : COLUMNS, wrong = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++)
            A[i] = (float)number();
        for (int i = 0; i < ROWS; i++)
            x[i] = (float)number(), y[i] = (float)number();
        BLAS(cublasSetMatrix(ROWS, COLUMNS, sizeof *A, A, ROWS, device[0], ROWS));
        BLAS(cublasSetVector(ROWS, sizeof *x, x, 1, device[1], 1));
        BLAS(cublasSetVector(ROWS, sizeof *y, y, 1, device[2], 1));
        BLAS(cublasSgemv(handle, t ? CUBLAS_OP_T : CUBLAS_OP_N, ROWS, COLUMNS, &two,
                         device[0], ROWS, device[1], t ? -1 : 1, &less, device[2], 1));
        BLAS(cublasGetVector(ROWS, sizeof *is, device[2], 1, is, 1));
        for (int i = 0; i < rows; i++) {
            float sum = 0;
            for (int k = 0; k < columns; k++)
                sum +=
                    (t ? A[k + i * ROWS] : A[i + k * ROWS]) * x[t ? columns - 1 - k : k];
            wrong += is[i] != 2 * sum - y[i];
        }
        expect(wrong == 0, "%d elements are wrong", wrong);
    }
    point("a matrix times a vector");
}

int main(void) {
    for (int w = 0; w < 3; w++)
        CUDA(cudaMalloc(&device[w], sizeof a));
    BLAS(cublasCreate(&handle));
    products();
    halves();
    vectors();
    matrix_times_vector();
    BLAS(cublasDestroy(handle));
    for (int w = 0; w < 3; w++)
        CUDA(cudaFree(device[w]));
    return finish();
}
