/*
 * calls.c has cuBLAS's calls: what each is given, by the types of its name. What is done
 * with it, operations.c has.
 */
#include "blas/operations.h"

#define NO_OPERAND ((struct operand){0})

/* What there is in float and double; these for floats also with int64_t. */
#define VECTOR_CALLS(letter, type, code, suffix, integer)                               \
    cublasStatus_t cublas##letter##axpy_v2##suffix(                                     \
        cublasHandle_t handle, integer n, const type *alpha, const type *x,             \
        integer incx, type *y, integer incy) {                                          \
        CUBLAS_CALL;                                                                    \
        return blas_walk(handle, AXPY, alpha, code, operand_vector(code, x, n, incx),   \
                         operand_vector(code, y, n, incy));                             \
    }                                                                                   \
    cublasStatus_t cublas##letter##scal_v2##suffix(                                     \
        cublasHandle_t handle, integer n, const type *alpha, type *x, integer incx) {   \
        CUBLAS_CALL;                                                                    \
        return blas_walk(handle, SCAL, alpha, code, NO_OPERAND,                         \
                         operand_vector(code, x, n, incx));                             \
    }                                                                                   \
    cublasStatus_t cublas##letter##nrm2_v2##suffix(                                     \
        cublasHandle_t handle, integer n, const type *x, integer incx, type *result) {  \
        CUBLAS_CALL;                                                                    \
        return blas_measure(handle, NRM2, operand_vector(code, x, n, incx), NO_OPERAND, \
                            result, code);                                              \
    }
VECTOR_CALLS(S, float, CUDA_R_32F, , int)
VECTOR_CALLS(S, float, CUDA_R_32F, _64, int64_t)
VECTOR_CALLS(D, double, CUDA_R_64F, , int)

#define CALLS(letter, small, type, code)                                                 \
    cublasStatus_t cublas##letter##copy_v2(cublasHandle_t handle, int n, const type *x,  \
                                           int incx, type *y, int incy) {                \
        CUBLAS_CALL;                                                                     \
        return blas_walk(handle, COPY, NULL, code, operand_vector(code, x, n, incx),     \
                         operand_vector(code, y, n, incy));                              \
    }                                                                                    \
    cublasStatus_t cublas##letter##dot_v2(cublasHandle_t handle, int n, const type *x,   \
                                          int incx, const type *y, int incy,             \
                                          type *result) {                                \
        CUBLAS_CALL;                                                                     \
        return blas_measure(handle, DOT, operand_vector(code, x, n, incx),               \
                            operand_vector(code, y, n, incy), result, code);             \
    }                                                                                    \
    cublasStatus_t cublasI##small##amax_v2(cublasHandle_t handle, int n, const type *x,  \
                                           int incx, int *result) {                      \
        CUBLAS_CALL;                                                                     \
        return blas_measure(handle, AMAX, operand_vector(code, x, n, incx), NO_OPERAND,  \
                            result, code);                                               \
    }                                                                                    \
    cublasStatus_t cublas##letter##gemm_v2(                                              \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, \
        int k, const type *alpha, const type *A, int lda, const type *B, int ldb,        \
        const type *beta, type *C, int ldc) {                                            \
        CUBLAS_CALL;                                                                     \
        return blas_product(handle, code, operand_matrix(code, A, ta, m, k, lda),        \
                            operand_matrix(code, B, tb, k, n, ldb),                      \
                            operand_matrix(code, C, CUBLAS_OP_N, m, n, ldc), k, alpha,   \
                            beta, 1);                                                    \
    }
CALLS(S, s, float, CUDA_R_32F)
CALLS(D, d, double, CUDA_R_64F)

/* A product with a matrix of one column. */
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m,
                              int n, const float *alpha, const float *A, int lda,
                              const float *x, int incx, const float *beta, float *y,
                              int incy) {
    CUBLAS_CALL;
    int rows = trans == CUBLAS_OP_N ? m : n, columns = trans == CUBLAS_OP_N ? n : m;
    return blas_product(
        handle, CUDA_R_32F, operand_matrix(CUDA_R_32F, A, trans, rows, columns, lda),
        operand_vector(CUDA_R_32F, x, columns, incx),
        operand_vector(CUDA_R_32F, y, rows, incy), columns, alpha, beta, 1);
}

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
    struct operand a = operand_matrix(atype, A, ta, m, k, lda),
                   b = operand_matrix(btype, B, tb, k, n, ldb),
                   c = operand_matrix(ctype, C, CUBLAS_OP_N, m, n, ldc);
    a.stride = stridea, b.stride = strideb, c.stride = stridec;
    return blas_product(handle, sums_in(compute), a, b, c, k, alpha, beta, batch);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k, const void *alpha,
                            const void *A, cudaDataType atype, int lda, const void *B,
                            cudaDataType btype, int ldb, const void *beta, void *C,
                            cudaDataType ctype, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
    CUBLAS_CALL;
    (void)algorithm;
    return blas_product(handle, sums_in(compute), operand_matrix(atype, A, ta, m, k, lda),
                        operand_matrix(btype, B, tb, k, n, ldb),
                        operand_matrix(ctype, C, CUBLAS_OP_N, m, n, ldc), k, alpha, beta,
                        1);
}

static cublasStatus_t moved(int rows, int columns, int size, const void *from, int lda,
                            void *to, int ldb, enum cudaMemcpyKind kind) {
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
#define TRANSFERS(to_or_from, kind)                                                      \
    cublasStatus_t cublas##to_or_from##Vector(int n, int size, const void *from,         \
                                              int incx, void *to, int incy) {            \
        CUBLAS_CALL;                                                                     \
        return moved(1, n, size, from, incx, to, incy, kind);                            \
    }                                                                                    \
    cublasStatus_t cublas##to_or_from##Matrix(                                           \
        int rows, int columns, int size, const void *from, int lda, void *to, int ldb) { \
        CUBLAS_CALL;                                                                     \
        return moved(rows, columns, size, from, lda, to, ldb, kind);                     \
    }
TRANSFERS(Set, cudaMemcpyHostToDevice)
TRANSFERS(Get, cudaMemcpyDeviceToHost)
