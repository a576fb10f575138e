/*
 * cuBLAS for more than floats, against sums made one by one: doubles, halves, batches,
 * places, exchanges; with whole numbers, so that every result is exact.
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
    BLAS(cublasDgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &two,
                                   device[0], M, 4096, device[1], K, 4096, &less,
                                   device[2], M, 4096, BATCH));
    fetch(2);
    for (int i = 0; i < BATCH; i++)
        check_product(false, false, M, K, M, 4096 * i, "strided");
    fill();
    double *at[3][BATCH], **there[3];
    for (int w = 0; w < 3; w++) {
        for (int i = 0; i < BATCH; i++)
            at[w][i] = (double *)device[w] + 4096 * i;
        CUDA(cudaMalloc((void **)&there[w], sizeof at[w]));
        CUDA(cudaMemcpy(there[w], at[w], sizeof at[w], cudaMemcpyHostToDevice));
    }
    BLAS(cublasDgemmBatched(
        handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &two, (const double *const *)there[0],
        M, (const double *const *)there[1], K, &less, there[2], M, BATCH));
    fetch(2);
    for (int i = 0; i < BATCH; i++)
        check_product(false, false, M, K, M, 4096 * i, "batched");
    for (int w = 0; w < 3; w++)
        CUDA(cudaFree(there[w]));
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

// C has no halves, so the header declares these for C++ only.
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t ta,
                           cublasOperation_t tb, int m, int n, int k, const void *alpha,
                           const void *A, int lda, const void *B, int ldb,
                           const void *beta, void *C, int ldc);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t ta,
                                  cublasOperation_t tb, int m, int n, int k,
                                  const void *alpha, const void *const A[], int lda,
                                  const void *const B[], int ldb, const void *beta,
                                  void *const C[], int ldc, int batch);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const void *alpha, const void *A, int lda,
                                         long long int stridea, const void *B, int ldb,
                                         long long int strideb, const void *beta, void *C,
                                         int ldc, long long int stridec, int batch);

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

    // The same into halves, by each of three calls.
    const unsigned short one_half = 0x3c00, none = 0;
    void *at[3] = {device[0], device[1], device[2]}, **there;
    CUDA(cudaMalloc((void **)&there, sizeof at));
    CUDA(cudaMemcpy(there, at, sizeof at, cudaMemcpyHostToDevice));
    for (int call = 0; call < 3; call++) {
        CUDA(cudaMemset(device[2], 0, sizeof x));
        if (call == 0)
            BLAS(cublasHgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S, &one_half,
                             device[0], S, device[1], S, &none, device[2], S));
        else if (call == 1)
            BLAS(cublasHgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S,
                                           &one_half, device[0], S, 0, device[1], S, 0,
                                           &none, device[2], S, 0, 1));
        else
            BLAS(cublasHgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, S, S, S, &one_half,
                                    (const void *const *)there, S,
                                    (const void *const *)(there + 1), S, &none,
                                    (void *const *)(there + 2), S, 1));
        BLAS(cublasGetMatrix(S, S, 2, device[2], S, x, S));
        wrong = 0;
        for (int i = 0; i < S * S; i++)
            wrong += value_of(x[i]) != z[i];
        expect(wrong == 0, "call %d: %d halves are wrong", call, wrong);
    }
    CUDA(cudaFree(there));
    point("products of halves into halves");
}

static void vectors(void) {
    const double three = 3, two = 2, one = 1, zero = 0;
    double sum = 0, sums = 0, largest = 0, result;
    int place = 0, found;
    fill();
    for (int i = 0; i < 100; i++) {
        sum += a[2 * i] * b[i];
        sums += a[i] < 0 ? -a[i] : a[i];
        double size = a[i] < 0 ? -a[i] : a[i];
        place = size > largest ? i + 1 : place;
        largest = size > largest ? size : largest;
    }
    BLAS(cublasDdot(handle, 100, device[0], 2, device[1], 1, &result));
    expect(result == sum, "dot: %g, not %g", result, sum);
    BLAS(cublasDasum(handle, 100, device[0], 1, &result));
    expect(result == sums, "asum: %g, not %g", result, sums);
    BLAS(cublasIdamax(handle, 100, device[0], 1, &found));
    expect(found == place, "amax: %d, not %d", found, place);
    BLAS(cublasDaxpy(handle, 100, &three, device[0], 1, device[1], 1));
    BLAS(cublasDscal(handle, 100, &two, device[1], 1));
    BLAS(cublasDswap(handle, 100, device[1], 1, device[2], 1));
    fetch(2);
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += got[i] != 2 * (b[i] + 3 * a[i]);
    fetch(1);
    for (int i = 0; i < 100; i++)
        wrong += got[i] != c[i];
    expect(wrong == 0, "axpy, scal, swap: %d elements are wrong", wrong);
    point("vectors of doubles");
    fill();
    wrong = 0;
    BLAS(cublasDgemv(handle, CUBLAS_OP_T, M, N, &two, device[0], M, device[1], 1, &zero,
                     device[2], 2));
    fetch(2);
    for (int j = 0; j < N; j++) {
        double dot = 0;
        for (int i = 0; i < M; i++)
            dot += a[i + j * M] * b[i];
        wrong += got[2 * j] != 2 * dot;
    }
    fill();
    BLAS(cublasDger(handle, M, N, &two, device[0], 1, device[1], 1, device[2], M));
    fetch(2);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            wrong += got[i + j * M] != c[i + j * M] + 2 * a[i] * b[j];
    fill();
    BLAS(cublasDgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, N, &one, device[0], N, &zero,
                     NULL, M, device[2], M));
    fetch(2);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            wrong += got[i + j * M] != a[j + i * N];
    expect(wrong == 0, "gemv, ger, geam: %d elements are wrong", wrong);
    point("gemv, ger, geam");
}

static void many_gemvs(void) {
    const double two = 2, less = -1;
    double *at[3][BATCH], **there;
    CUDA(cudaMalloc((void **)&there, sizeof at));
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < BATCH; i++)
            at[w][i] = (double *)device[w] + 4096 * i;
    CUDA(cudaMemcpy(there, at, sizeof at, cudaMemcpyHostToDevice));
    for (int call = 0; call < 2; call++) {
        fill();
        if (call == 0)
            BLAS(cublasDgemvStridedBatched(handle, CUBLAS_OP_T, M, N, &two, device[0], M,
                                           4096, device[1], 1, 4096, &less, device[2], 2,
                                           4096, BATCH));
        else
            BLAS(cublasDgemvBatched(handle, CUBLAS_OP_T, M, N, &two,
                                    (const double *const *)there, M,
                                    (const double *const *)there + BATCH, 1, &less,
                                    there + 2 * BATCH, 2, BATCH));
        fetch(2);
        int wrong = 0;
        for (int s = 0; s < BATCH * 4096; s += 4096)
            for (int j = 0; j < N; j++) {
                double dot = 0;
                for (int i = 0; i < M; i++)
                    dot += a[s + i + j * M] * b[s + i];
                wrong += got[s + 2 * j] != 2 * dot - c[s + 2 * j];
            }
        expect(wrong == 0, "call %d: %d elements are wrong", call, wrong);
    }
    CUDA(cudaFree(there));
    point("many products of a matrix and a vector");
}

/* rotg and rotmg, each with what it is to find: a, b, c, s; d1, d2, x1, y1, param. What
 * param's flag implies is not stored. */
static void find_rotations(void) {
    const double plain[][2][4] = {{{-3, -4}, {-5, 1 / .6, .6, .8}},
                                  {{4, 3}, {5, .6, .8, .6}},
                                  {{0, 2}, {2, 1, 0, 1}},
                                  {{0, 0}, {0, 0, 1, 0}}};
    const double small = 1. / (1 << 25), by = 1. / 4096;
    const double modified[][2][9] = {
        {{1, 1, 2, 1, 9, 9, 9, 9, 9}, {.8, .8, 2.5, 1, 0, 9, -.5, .5, 9}},
        {{2, 1, 1, 2, 9, 9, 9, 9, 9}, {1 / 1.5, 2 / 1.5, 3, 2, 1, 1, 9, 9, .5}},
        {{2, 1, 1, 0, 9, 9, 9, 9, 9}, {2, 1, 1, 0, -2, 9, 9, 9, 9}},
        {{-1, 1, 1, 1, 9, 9, 9, 9, 9}, {0, 0, 0, 1, -1, 0, 0, 0, 0}},
        {{small, small / 4, 1, 1, 9, 9, 9, 9, 9},
         {.4, .1, 1.25 * by, 1, -1, by, -by, .25 * by, by}}};
    for (int i = 0; i < 4; i++) {
        double is[4] = {plain[i][0][0], plain[i][0][1]};
        BLAS(cublasDrotg(handle, &is[0], &is[1], &is[2], &is[3]));
        for (int k = 0; k < 4; k++)
            expect(is[k] == plain[i][1][k], "rotg %d: number %d is %g, not %g", i, k,
                   is[k], plain[i][1][k]);
    }
    for (int i = 0; i < 5; i++) {
        double is[9];
        memcpy(is, modified[i][0], sizeof is);
        BLAS(cublasDrotmg(handle, &is[0], &is[1], &is[2], &is[3], &is[4]));
        for (int k = 0; k < 9; k++)
            expect(is[k] == modified[i][1][k], "rotmg %d: number %d is %g, not %g", i, k,
                   is[k], modified[i][1][k]);
    }
    point("rotg and rotmg");
}

/* Every second x with y, from its end: x = h11 * x + h12 * y, y = h21 * x + h22 * y. */
static void check_rotated(const double h[4], const char *what) {
    int wrong = 0;
    fetch(0);
    for (int i = 0; i < 200; i++)
        wrong += got[i] != (i % 2 ? a[i] : h[0] * a[i] + h[2] * b[99 - i / 2]);
    fetch(1);
    for (int i = 0; i < 101; i++)
        wrong += got[i] != (i == 100 ? b[i] : h[1] * a[198 - 2 * i] + h[3] * b[i]);
    expect(wrong == 0, "%s: %d elements are wrong", what, wrong);
}

static void rotations(void) {
    const double c = 2, s = 3;
    const double params[][5] = {
        {-1, 2, 3, 4, 5}, {0, 9, 3, 4, 9}, {1, 2, 9, 9, 5}, {-2, 9, 9, 9, 9}};
    const double h[][4] = {{2, 3, 4, 5}, {1, 3, 4, 1}, {2, -1, 1, 5}, {1, 0, 0, 1}};
    fill();
    BLAS(cublasDrot(handle, 100, device[0], 2, device[1], -1, &c, &s));
    check_rotated((const double[4]){2, -3, 3, 2}, "rot");
    fill();
    BLAS(cublasDrot_64(handle, 100, device[0], 2, device[1], -1, &c, &s));
    check_rotated((const double[4]){2, -3, 3, 2}, "rot, 64 bits");
    for (int i = 0; i < 8; i++) {
        fill();
        if (i < 4)
            BLAS(cublasDrotm(handle, 100, device[0], 2, device[1], -1, params[i]));
        else
            BLAS(cublasDrotm_64(handle, 100, device[0], 2, device[1], -1, params[i - 4]));
        check_rotated(h[i % 4], "rotm");
    }
    point("rot and rotm");
}

/* x += 2 * y, x *= 2, x . y, |x|: halves, with a float for the number. */
static void vectors_of_halves(void) {
    enum { S = 5 };
    const unsigned short x[S] = {0x3c00, 0xc000, 0, 0x4000, 0xbc00}; // 1, -2, 0, 2, -1
    const unsigned short y[S] = {0x3c00, 0x3c00, 0xbc00, 0, 0xbc00}; // 1, 1, -1, 0, -1
    const double then[S] = {6, 0, -4, 4, -6};
    const float two = 2;
    unsigned short out[S];
    float dot = 0, norm = 0;
    BLAS(cublasSetVector(S, 2, x, 1, device[0], 1));
    BLAS(cublasSetVector(S, 2, y, 1, device[1], 1));
    BLAS(cublasNrm2Ex(handle, S - 1, device[0], CUDA_R_16F, 1, &norm, CUDA_R_32F,
                      CUDA_R_32F));
    expect(norm == 3, "nrm2: %g, not 3", norm);
    BLAS(cublasAxpyEx(handle, S, &two, CUDA_R_32F, device[1], CUDA_R_16F, 1, device[0],
                      CUDA_R_16F, 1, CUDA_R_32F));
    BLAS(cublasScalEx(handle, S, &two, CUDA_R_32F, device[0], CUDA_R_16F, 1, CUDA_R_32F));
    BLAS(cublasGetVector(S, 2, device[0], 1, out, 1));
    for (int i = 0; i < S; i++)
        expect(value_of(out[i]) == then[i], "element %d: %g, not %g", i, value_of(out[i]),
               then[i]);
    BLAS(cublasDotEx(handle, S, device[0], CUDA_R_16F, 1, device[1], CUDA_R_16F, 1, &dot,
                     CUDA_R_32F, CUDA_R_32F));
    expect(dot == 16, "dot: %g, not 16", dot);
    BLAS(cublasDotcEx(handle, S, device[0], CUDA_R_16F, 1, device[1], CUDA_R_16F, 1, out,
                      CUDA_R_16F, CUDA_R_32F));
    expect(value_of(out[0]) == 16, "dotc: %g, not 16", value_of(out[0]));
    expect(cublasNrm2Ex(handle, S, device[0], (cudaDataType)99, 1, &norm, CUDA_R_32F,
                        CUDA_R_32F) == CUBLAS_STATUS_NOT_SUPPORTED,
           "a type that is none");
    point("vectors of halves");
}

int main(void) {
    for (int w = 0; w < 3; w++)
        CUDA(cudaMalloc(&device[w], sizeof a));
    BLAS(cublasCreate(&handle));
    products();
    halves();
    vectors();
    find_rotations();
    rotations();
    many_gemvs();
    vectors_of_halves();
    BLAS(cublasDestroy(handle));
    for (int w = 0; w < 3; w++)
        CUDA(cudaFree(device[w]));
    return finish();
}
