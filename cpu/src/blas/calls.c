/*
 * calls.c has cuBLAS's calls: what each is given, by the types of its name. What
 * is done with it, operations.c has.
 */
#include "blas/operations.h"

/* --- The calls: float and double --------------------------------------------------- */

#define NO_OPERAND ((struct operand){0})

/* With int and with int64_t. */
#define AXPY_CALL(name, type, code, integer)                                           \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha,           \
                        const type *x, integer incx, type *y, integer incy) {          \
        CUBLAS_CALL;                                                                   \
        return cublas_walk(handle, AXPY, alpha, code, cublas_vector(code, x, n, incx), \
                           cublas_vector(code, y, n, incy));                           \
    }
#define SCAL_CALL(name, type, code, integer)                                          \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha, type *x, \
                        integer incx) {                                               \
        CUBLAS_CALL;                                                                  \
        return cublas_walk(handle, SCAL, alpha, code, NO_OPERAND,                     \
                           cublas_vector(code, x, n, incx));                          \
    }
#define COPY_CALL(name, type, code, integer)                                           \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        type *y, integer incy) {                                       \
        CUBLAS_CALL;                                                                   \
        return cublas_walk(handle, COPY, NULL, code, cublas_vector(code, x, n, incx),  \
                           cublas_vector(code, y, n, incy));                           \
    }
#define DOT_CALL(name, type, code, integer)                                            \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        const type *y, integer incy, type *result) {                   \
        CUBLAS_CALL;                                                                   \
        return cublas_measure(handle, DOT, cublas_vector(code, x, n, incx),            \
                              cublas_vector(code, y, n, incy), result, code, false);   \
    }
#define MEASURE_CALL(name, type, code, integer, kind, output)                            \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx,   \
                        output *result) {                                                \
        CUBLAS_CALL;                                                                     \
        return cublas_measure(handle, kind, cublas_vector(code, x, n, incx), NO_OPERAND, \
                              result, code, sizeof(integer) == 8);                       \
    }
#define GEMM_CALL(name, type, code, integer)                                            \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,                    \
                        cublasOperation_t tb, integer m, integer n, integer k,          \
                        const type *alpha, const type *A, integer lda, const type *B,   \
                        integer ldb, const type *beta, type *C, integer ldc) {          \
        CUBLAS_CALL;                                                                    \
        return cublas_strided(handle, code, ta, tb, m, n, k, alpha, A, code, lda, 0, B, \
                              code, ldb, 0, beta, C, code, ldc, 0, 1);                  \
    }
#define ROT_CALL(name, type, code, integer)                                      \
    cublasStatus_t name(cublasHandle_t handle, integer n, type *x, integer incx, \
                        type *y, integer incy, const type *c, const type *s) {   \
        CUBLAS_CALL;                                                             \
        return cublas_rotate(handle, ROT, cublas_vector(code, x, n, incx),       \
                             cublas_vector(code, y, n, incy), c, s, NULL);       \
    }
#define ROTM_CALL(name, type, code, integer)                                      \
    cublasStatus_t name(cublasHandle_t handle, integer n, type *x, integer incx,  \
                        type *y, integer incy, const type *param) {               \
        CUBLAS_CALL;                                                              \
        return cublas_rotate(handle, ROTM, cublas_vector(code, x, n, incx),       \
                             cublas_vector(code, y, n, incy), NULL, NULL, param); \
    }
AXPY_CALL(cublasSaxpy_v2, float, CUDA_R_32F, int)
AXPY_CALL(cublasSaxpy_v2_64, float, CUDA_R_32F, int64_t)
SCAL_CALL(cublasSscal_v2, float, CUDA_R_32F, int)
SCAL_CALL(cublasSscal_v2_64, float, CUDA_R_32F, int64_t)
COPY_CALL(cublasScopy_v2, float, CUDA_R_32F, int)
COPY_CALL(cublasScopy_v2_64, float, CUDA_R_32F, int64_t)
GEMM_CALL(cublasSgemm_v2, float, CUDA_R_32F, int)
GEMM_CALL(cublasSgemm_v2_64, float, CUDA_R_32F, int64_t)
AXPY_CALL(cublasDaxpy_v2, double, CUDA_R_64F, int)
AXPY_CALL(cublasDaxpy_v2_64, double, CUDA_R_64F, int64_t)
SCAL_CALL(cublasDscal_v2, double, CUDA_R_64F, int)
SCAL_CALL(cublasDscal_v2_64, double, CUDA_R_64F, int64_t)
COPY_CALL(cublasDcopy_v2, double, CUDA_R_64F, int)
COPY_CALL(cublasDcopy_v2_64, double, CUDA_R_64F, int64_t)
GEMM_CALL(cublasDgemm_v2, double, CUDA_R_64F, int)
GEMM_CALL(cublasDgemm_v2_64, double, CUDA_R_64F, int64_t)
DOT_CALL(cublasSdot_v2, float, CUDA_R_32F, int)
DOT_CALL(cublasSdot_v2_64, float, CUDA_R_32F, int64_t)
DOT_CALL(cublasDdot_v2, double, CUDA_R_64F, int)
DOT_CALL(cublasDdot_v2_64, double, CUDA_R_64F, int64_t)
MEASURE_CALL(cublasSnrm2_v2, float, CUDA_R_32F, int, NRM2, float)
MEASURE_CALL(cublasSnrm2_v2_64, float, CUDA_R_32F, int64_t, NRM2, float)
MEASURE_CALL(cublasDnrm2_v2, double, CUDA_R_64F, int, NRM2, double)
MEASURE_CALL(cublasDnrm2_v2_64, double, CUDA_R_64F, int64_t, NRM2, double)
MEASURE_CALL(cublasSasum_v2, float, CUDA_R_32F, int, ASUM, float)
MEASURE_CALL(cublasSasum_v2_64, float, CUDA_R_32F, int64_t, ASUM, float)
MEASURE_CALL(cublasDasum_v2, double, CUDA_R_64F, int, ASUM, double)
MEASURE_CALL(cublasDasum_v2_64, double, CUDA_R_64F, int64_t, ASUM, double)
MEASURE_CALL(cublasIsamax_v2, float, CUDA_R_32F, int, AMAX, int)
MEASURE_CALL(cublasIsamax_v2_64, float, CUDA_R_32F, int64_t, AMAX, int64_t)
MEASURE_CALL(cublasIdamax_v2, double, CUDA_R_64F, int, AMAX, int)
MEASURE_CALL(cublasIdamax_v2_64, double, CUDA_R_64F, int64_t, AMAX, int64_t)
MEASURE_CALL(cublasIsamin_v2, float, CUDA_R_32F, int, AMIN, int)
MEASURE_CALL(cublasIsamin_v2_64, float, CUDA_R_32F, int64_t, AMIN, int64_t)
MEASURE_CALL(cublasIdamin_v2, double, CUDA_R_64F, int, AMIN, int)
MEASURE_CALL(cublasIdamin_v2_64, double, CUDA_R_64F, int64_t, AMIN, int64_t)
ROT_CALL(cublasSrot_v2, float, CUDA_R_32F, int)
ROT_CALL(cublasSrot_v2_64, float, CUDA_R_32F, int64_t)
ROT_CALL(cublasDrot_v2, double, CUDA_R_64F, int)
ROT_CALL(cublasDrot_v2_64, double, CUDA_R_64F, int64_t)
ROTM_CALL(cublasSrotm_v2, float, CUDA_R_32F, int)
ROTM_CALL(cublasSrotm_v2_64, float, CUDA_R_32F, int64_t)
ROTM_CALL(cublasDrotm_v2, double, CUDA_R_64F, int)
ROTM_CALL(cublasDrotm_v2_64, double, CUDA_R_64F, int64_t)

/* The matrix and the two vectors of a gemv, without their addresses. */
static void gemv_operands(struct operand of[3], int code, cublasOperation_t trans, int m,
                          int n, int lda, int incx, int incy) {
    int rows = trans == CUBLAS_OP_N ? m : n, columns = trans == CUBLAS_OP_N ? n : m;
    of[0] = cublas_matrix(code, NULL, trans, rows, columns, lda);
    of[1] = cublas_vector(code, NULL, columns, incx);
    of[2] = cublas_vector(code, NULL, rows, incy);
}

#define TYPE(letter, type, code)                                                         \
    cublasStatus_t cublas##letter##swap_v2(cublasHandle_t handle, int n, type *x,        \
                                           int incx, type *y, int incy) {                \
        CUBLAS_CALL;                                                                     \
        return cublas_walk(handle, SWAP, NULL, code, cublas_vector(code, x, n, incx),    \
                           cublas_vector(code, y, n, incy));                             \
    }                                                                                    \
    cublasStatus_t cublas##letter##rotg_v2(cublasHandle_t handle, type *a, type *b,      \
                                           type *c, type *s) {                           \
        CUBLAS_CALL;                                                                     \
        return cublas_rotation(handle, ROTG, code, (void *[5]){a, b, c, s});             \
    }                                                                                    \
    cublasStatus_t cublas##letter##rotmg_v2(cublasHandle_t handle, type *d1, type *d2,   \
                                            type *x1, const type *y1, type *param) {     \
        CUBLAS_CALL;                                                                     \
        return cublas_rotation(handle, ROTMG, code,                                      \
                               (void *[5]){d1, d2, x1, (void *)(uintptr_t)y1, param});   \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemv_v2(                                              \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const type *alpha, \
        const type *A, int lda, const type *x, int incx, const type *beta, type *y,      \
        int incy) {                                                                      \
        CUBLAS_CALL;                                                                     \
        struct operand of[3];                                                            \
        gemv_operands(of, code, trans, m, n, lda, incx, incy);                           \
        of[0].at = A, of[1].at = x, of[2].at = y;                                        \
        return cublas_gemv(handle, of[0], of[1], of[2], alpha, beta, 1);                 \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemvBatched(                                          \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const type *alpha, \
        const type *const A[], int lda, const type *const x[], int incx,                 \
        const type *beta, type *const y[], int incy, int batch) {                        \
        CUBLAS_CALL;                                                                     \
        struct operand of[3];                                                            \
        gemv_operands(of, code, trans, m, n, lda, incx, incy);                           \
        of[0].many = (const void *const *)A;                                             \
        of[1].many = (const void *const *)x;                                             \
        of[2].many = (const void *const *)y;                                             \
        return cublas_gemv(handle, of[0], of[1], of[2], alpha, beta, batch);             \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemvStridedBatched(                                   \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const type *alpha, \
        const type *A, int lda, long long int stridea, const type *x, int incx,          \
        long long int stridex, const type *beta, type *y, int incy,                      \
        long long int stridey, int batch) {                                              \
        CUBLAS_CALL;                                                                     \
        struct operand of[3];                                                            \
        gemv_operands(of, code, trans, m, n, lda, incx, incy);                           \
        of[0].at = A, of[0].stride = stridea;                                            \
        of[1].at = x, of[1].stride = stridex;                                            \
        of[2].at = y, of[2].stride = stridey;                                            \
        return cublas_gemv(handle, of[0], of[1], of[2], alpha, beta, batch);             \
    }                                                                                    \
    cublasStatus_t cublas##letter##ger_v2(cublasHandle_t handle, int m, int n,           \
                                          const type *alpha, const type *x, int incx,    \
                                          const type *y, int incy, type *A, int lda) {   \
        CUBLAS_CALL;                                                                     \
        return cublas_ger(handle, alpha, cublas_vector(code, x, m, incx),                \
                          cublas_vector(code, y, n, incy),                               \
                          cublas_matrix(code, A, CUBLAS_OP_N, m, n, lda));               \
    }                                                                                    \
    cublasStatus_t cublas##letter##geam(                                                 \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
        const type *alpha, const type *A, int lda, const type *beta, const type *B,      \
        int ldb, type *C, int ldc) {                                                     \
        CUBLAS_CALL;                                                                     \
        return cublas_geam(handle, alpha, cublas_matrix(code, A, ta, m, n, lda), beta,   \
                           cublas_matrix(code, B, tb, m, n, ldb),                        \
                           cublas_matrix(code, C, CUBLAS_OP_N, m, n, ldc));              \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemmBatched(                                          \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
        int k, const type *alpha, const type *const A[], int lda, const type *const B[], \
        int ldb, const type *beta, type *const C[], int ldc, int batch) {                \
        CUBLAS_CALL;                                                                     \
        return cublas_many(handle, code, ta, tb, m, n, k, alpha, (const void *const *)A, \
                           code, lda, (const void *const *)B, code, ldb, beta,           \
                           (const void *const *)C, code, ldc, batch);                    \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemmStridedBatched(                                   \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
        int k, const type *alpha, const type *A, int lda, long long int stridea,         \
        const type *B, int ldb, long long int strideb, const type *beta, type *C,        \
        int ldc, long long int stridec, int batch) {                                     \
        CUBLAS_CALL;                                                                     \
        return cublas_strided(handle, code, ta, tb, m, n, k, alpha, A, code, lda,        \
                              stridea, B, code, ldb, strideb, beta, C, code, ldc,        \
                              stridec, batch);                                           \
    }
TYPE(S, float, CUDA_R_32F)
TYPE(D, double, CUDA_R_64F)

/* --- The calls: types by name ------------------------------------------------------ */

/* What the sums are made in, which is also the type of alpha and beta. -1: not here. */
static int sums_in(cublasComputeType_t type) {
    switch (type) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32: return CUDA_R_32F;
    default: return -1;
    }
}

/* The sums are made in double, whatever `execution` says. */
cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alphatype, const void *x, cudaDataType xtype,
                            int incx, void *y, cudaDataType ytype, int incy,
                            cudaDataType execution) {
    CUBLAS_CALL;
    (void)execution;
    return cublas_walk(handle, AXPY, alpha, alphatype, cublas_vector(xtype, x, n, incx),
                       cublas_vector(ytype, y, n, incy));
}

cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha,
                            cudaDataType alphatype, void *x, cudaDataType xtype, int incx,
                            cudaDataType execution) {
    CUBLAS_CALL;
    (void)execution;
    return cublas_walk(handle, SCAL, alpha, alphatype, NO_OPERAND,
                       cublas_vector(xtype, x, n, incx));
}

/* Of real numbers DotcEx is the same. */
#define DOT_EX(name)                                                                     \
    cublasStatus_t name(cublasHandle_t handle, int n, const void *x, cudaDataType xtype, \
                        int incx, const void *y, cudaDataType ytype, int incy,           \
                        void *result, cudaDataType type, cudaDataType execution) {       \
        CUBLAS_CALL;                                                                     \
        (void)execution;                                                                 \
        return cublas_measure(handle, DOT, cublas_vector(xtype, x, n, incx),             \
                              cublas_vector(ytype, y, n, incy), result, (int)type,       \
                              false);                                                    \
    }
DOT_EX(cublasDotEx)
DOT_EX(cublasDotcEx)

cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x,
                            cudaDataType xtype, int incx, void *result, cudaDataType type,
                            cudaDataType execution) {
    CUBLAS_CALL;
    (void)execution;
    return cublas_measure(handle, NRM2, cublas_vector(xtype, x, n, incx), NO_OPERAND,
                          result, (int)type, false);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k, const void *alpha,
                            const void *A, cudaDataType atype, int lda, const void *B,
                            cudaDataType btype, int ldb, const void *beta, void *C,
                            cudaDataType ctype, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
    CUBLAS_CALL;
    (void)algorithm;
    return cublas_strided(handle, sums_in(compute), ta, tb, m, n, k, alpha, A, atype, lda,
                          0, B, btype, ldb, 0, beta, C, ctype, ldc, 0, 1);
}

cublasStatus_t
cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
                           cublasOperation_t tb, int m, int n, int k, const void *alpha,
                           const void *A, cudaDataType atype, int lda,
                           long long int stridea, const void *B, cudaDataType btype,
                           int ldb, long long int strideb, const void *beta, void *C,
                           cudaDataType ctype, int ldc, long long int stridec, int batch,
                           cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    CUBLAS_CALL;
    (void)algorithm;
    return cublas_strided(handle, sums_in(compute), ta, tb, m, n, k, alpha, A, atype, lda,
                          stridea, B, btype, ldb, strideb, beta, C, ctype, ldc, stridec,
                          batch);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t ta,
                                   cublasOperation_t tb, int m, int n, int k,
                                   const void *alpha, const void *const A[],
                                   cudaDataType atype, int lda, const void *const B[],
                                   cudaDataType btype, int ldb, const void *beta,
                                   void *const C[], cudaDataType ctype, int ldc,
                                   int batch, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm) {
    CUBLAS_CALL;
    (void)algorithm;
    return cublas_many(handle, sums_in(compute), ta, tb, m, n, k, alpha, A, atype, lda, B,
                       btype, ldb, beta, (const void *const *)C, ctype, ldc, batch);
}

/* Of halves, which C has no type for. */
#pragma GCC visibility push(default)
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
#pragma GCC visibility pop

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t ta,
                           cublasOperation_t tb, int m, int n, int k, const void *alpha,
                           const void *A, int lda, const void *B, int ldb,
                           const void *beta, void *C, int ldc) {
    CUBLAS_CALL;
    return cublas_strided(handle, CUDA_R_16F, ta, tb, m, n, k, alpha, A, CUDA_R_16F, lda,
                          0, B, CUDA_R_16F, ldb, 0, beta, C, CUDA_R_16F, ldc, 0, 1);
}

cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t ta,
                                  cublasOperation_t tb, int m, int n, int k,
                                  const void *alpha, const void *const A[], int lda,
                                  const void *const B[], int ldb, const void *beta,
                                  void *const C[], int ldc, int batch) {
    CUBLAS_CALL;
    return cublas_many(handle, CUDA_R_16F, ta, tb, m, n, k, alpha, A, CUDA_R_16F, lda, B,
                       CUDA_R_16F, ldb, beta, (const void *const *)C, CUDA_R_16F, ldc,
                       batch);
}

cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const void *alpha, const void *A, int lda,
                                         long long int stridea, const void *B, int ldb,
                                         long long int strideb, const void *beta, void *C,
                                         int ldc, long long int stridec, int batch) {
    CUBLAS_CALL;
    return cublas_strided(handle, CUDA_R_16F, ta, tb, m, n, k, alpha, A, CUDA_R_16F, lda,
                          stridea, B, CUDA_R_16F, ldb, strideb, beta, C, CUDA_R_16F, ldc,
                          stridec, batch);
}

/* --- Settings, and copies ---------------------------------------------------------- */

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    CUBLAS_CALL;
    (void)handle;
    if (!version)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    CUBLAS_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
    CUBLAS_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!mode)
        return CUBLAS_STATUS_INVALID_VALUE;
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t bytes) {
    CUBLAS_CALL;
    (void)workspace;
    (void)bytes;
    return is_context(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t moved(int64_t rows, int64_t columns, int64_t size, const void *from,
                            int64_t lda, void *to, int64_t ldb,
                            enum cudaMemcpyKind kind) {
    if (rows < 0 || columns < 0 || size <= 0 || lda <= 0 || ldb <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (rows == 0 || columns == 0)
        return CUBLAS_STATUS_SUCCESS;
    size_t one = (size_t)size;
    return cudaMemcpy2D(to, (size_t)ldb * one, from, (size_t)lda * one,
                        (size_t)rows * one, (size_t)columns, kind) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_MAPPING_ERROR;
}

/* A vector is a row, if its elements have a distance. */
#define TRANSFERS(suffix, integer)                                                      \
    cublasStatus_t cublasSetVector##suffix(integer n, integer size, const void *from,   \
                                           integer incx, void *to, integer incy) {      \
        CUBLAS_CALL;                                                                    \
        return moved(1, n, size, from, incx, to, incy, cudaMemcpyHostToDevice);         \
    }                                                                                   \
    cublasStatus_t cublasGetVector##suffix(integer n, integer size, const void *from,   \
                                           integer incx, void *to, integer incy) {      \
        CUBLAS_CALL;                                                                    \
        return moved(1, n, size, from, incx, to, incy, cudaMemcpyDeviceToHost);         \
    }                                                                                   \
    cublasStatus_t cublasSetMatrix##suffix(integer rows, integer columns, integer size, \
                                           const void *from, integer lda, void *to,     \
                                           integer ldb) {                               \
        CUBLAS_CALL;                                                                    \
        return moved(rows, columns, size, from, lda, to, ldb, cudaMemcpyHostToDevice);  \
    }                                                                                   \
    cublasStatus_t cublasGetMatrix##suffix(integer rows, integer columns, integer size, \
                                           const void *from, integer lda, void *to,     \
                                           integer ldb) {                               \
        CUBLAS_CALL;                                                                    \
        return moved(rows, columns, size, from, lda, to, ldb, cudaMemcpyDeviceToHost);  \
    }
TRANSFERS(, int)
TRANSFERS(_64, int64_t)
