/* operations.h: vectors and matrices of several types, and what cuBLAS does with them. */
#ifndef CPU_OPERATIONS_H
#define CPU_OPERATIONS_H

#include "blas/handles.h"

/* A vector (columns 1, ld its distance), or a matrix; so many of them. */
struct operand {
    const void *at;
    int type; // cudaDataType
    int64_t rows, columns, ld, stride;
    bool transposed, vector;
    const void *const *many; // instead of `at` and `stride`: on the device
};

enum kind {
    DOT,
    ASUM,
    AMAX,
    AMIN,
    NRM2,
    AXPY,
    SCAL,
    COPY,
    SWAP,
    ROT,
    ROTM,
    ROTG,
    ROTMG,
    GER,
    GEAM,
    GEMM
};

struct operand cublas_vector(int type, const void *at, int64_t n, int64_t distance);
struct operand cublas_matrix(int type, const void *at, cublasOperation_t op, int64_t rows,
                             int64_t columns, int64_t ld);

/* One number of one or two vectors, of type `type`; a place is an int64_t if `wide`, else
 * an int. */
cublasStatus_t cublas_measure(cublasHandle_t handle, enum kind kind, struct operand x,
                              struct operand y, void *result, int type, bool wide);
/* Through two vectors; `alpha`, of type `type`, is NULL where there is none. */
cublasStatus_t cublas_walk(cublasHandle_t handle, enum kind kind, const void *alpha,
                           int type, struct operand x, struct operand y);
/* Through two vectors: by c and s (ROT), or by the five numbers of `param` (ROTM). */
cublasStatus_t cublas_rotate(cublasHandle_t handle, enum kind kind, struct operand x,
                             struct operand y, const void *c, const void *s,
                             const void *param);
/* What they are found from, and they: a, b, c, s (ROTG), or d1, d2, x1, y1, param. */
cublasStatus_t cublas_rotation(cublasHandle_t handle, enum kind kind, int type,
                               void *const numbers[5]);
/* So many products of a matrix and a vector. */
cublasStatus_t cublas_gemv(cublasHandle_t handle, struct operand a, struct operand x,
                           struct operand y, const void *alpha, const void *beta,
                           int batch);
cublasStatus_t cublas_ger(cublasHandle_t handle, const void *alpha, struct operand x,
                          struct operand y, struct operand a);
cublasStatus_t cublas_geam(cublasHandle_t handle, const void *alpha, struct operand a,
                           const void *beta, struct operand b, struct operand c);
/* So many products of matrices: `stride` elements apart, or at addresses on the device.
 */
cublasStatus_t cublas_strided(cublasHandle_t handle, int compute, cublasOperation_t ta,
                              cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                              const void *alpha, const void *a, int atype, int64_t lda,
                              int64_t stridea, const void *b, int btype, int64_t ldb,
                              int64_t strideb, const void *beta, void *c, int ctype,
                              int64_t ldc, int64_t stridec, int batch);
cublasStatus_t cublas_many(cublasHandle_t handle, int compute, cublasOperation_t ta,
                           cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                           const void *alpha, const void *const *a, int atype,
                           int64_t lda, const void *const *b, int btype, int64_t ldb,
                           const void *beta, const void *const *c, int ctype, int64_t ldc,
                           int batch);

#endif
