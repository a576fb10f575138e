/*
 * arithmetic.h: the arithmetic behind cuBLAS: host memory in, host memory out.
 *
 * Nothing here knows of streams, devices or checks. Each number of a result is added up
 * in one fixed order, which depends on nothing but the sum's own length: the same bits
 * come out on every run, on every rank, whatever the processor's vectors, and whatever
 * else is calculated in the same call.
 *
 * Matrices are stored column by column; `ld`, the leading dimension, is the distance from
 * one column to the next. Vectors: element i is at i * inc, or for a negative inc that
 * far from the end. All lengths and distances are in elements.
 */
#ifndef CPU_BLAS_ARITHMETIC_H
#define CPU_BLAS_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

struct blas_matrix {
    const float *at;
    int64_t ld;
    bool transposed; // its rows are used as columns
};

/* C = alpha * A * B + beta * C; A is m x k, B is k x n, both after being transposed. With
 * beta 0 C is not read. */
void blas_gemm(int64_t m, int64_t n, int64_t k, float alpha, struct blas_matrix a,
               struct blas_matrix b, float beta, float *c, int64_t ldc);

void blas_axpy(int64_t n, float alpha, const float *x, int64_t incx, float *y,
               int64_t incy);                                   // y += alpha * x
void blas_scal(int64_t n, float alpha, float *x, int64_t incx); // x *= alpha
void blas_copy(int64_t n, const float *x, int64_t incx, float *y, int64_t incy); // y = x

#endif
