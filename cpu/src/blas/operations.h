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
};

enum kind { AXPY, SCAL, COPY, DOT, NRM2, AMAX, GEMM };

struct operand operand_vector(int type, const void *at, int64_t n, int64_t distance);
struct operand operand_matrix(int type, const void *at, cublasOperation_t op,
                              int64_t rows, int64_t columns, int64_t ld);

/* One number of one or two vectors, of type `type`; a place is an int. */
cublasStatus_t blas_measure(cublasHandle_t handle, enum kind kind, struct operand x,
                            struct operand y, void *result, int type);
/* Through two vectors; `alpha`, of type `type`, is NULL where there is none. */
cublasStatus_t blas_walk(cublasHandle_t handle, enum kind kind, const void *alpha,
                         int type, struct operand x, struct operand y);
/* C = alpha * A * B + beta * C, so often, each `stride` elements after the one before;
 * A has `k` columns. The sums, alpha and beta are of type `compute`; -1: of none that is
 * here. */
cublasStatus_t blas_product(cublasHandle_t handle, int compute, struct operand a,
                            struct operand b, struct operand c, int64_t k,
                            const void *alpha, const void *beta, int batch);

#endif
