/*
 * cublas_front.h: the kinds of cublas.list.
 *
 * A call is an operation on the stream of its handle; one whose result is a number on the
 * host waits for it.
 */
#ifndef CUBLAS_FRONT_H
#define CUBLAS_FRONT_H

#include "answer.h"

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

/* What an operation reads or writes: a vector, a matrix, or a number that lies where
 * numbers do. */
struct blas_use {
    struct rows rows;
    bool write, number;
    bool scaled; // only used if its factor is not 0
    const void *factor;
    size_t factor_bytes;
};

enum { MOST_USES = 6 }; // of one operation

struct blas_begun {
    enum { UNSEEN, GOES_ON, WAITS, WRONG } how;
    struct span *span;
};

struct blas_begun blas_begins(cublasHandle_t handle, const struct blas_use *uses,
                              int nuses, bool result, struct judge_at at);
cublasStatus_t blas_ends(struct blas_begun begun, cublasStatus_t result,
                         struct judge_at at);
struct blas_use blas_matrix(const void *start, int64_t rows, int64_t columns,
                            int64_t distance, size_t size, bool write);
/* With a negative distance it starts at the far end, and lies in the same place. */
struct blas_use vector_rows(const void *start, int64_t n, int64_t distance, size_t size,
                            bool write);
struct blas_use blas_one(const void *start, size_t size, bool write);
struct blas_use blas_unless_zero(const void *factor, size_t bytes, struct blas_use use);
/* Between the host and a device, in the default stream: the host waits. */
void blas_moves(struct judge_at at);
cublasStatus_t blas_moved(cublasStatus_t result, struct judge_at at);

/* The rest of a function that uses what `...` lists. */
#define OPERATION(result, call, ...)                                           \
    do {                                                                       \
        const struct blas_use uses[] = {__VA_ARGS__};                          \
        struct blas_begun begun =                                              \
            blas_begins(handle, uses, sizeof uses / sizeof *uses, result, at); \
        return begun.how == WRONG ? CUBLAS_STATUS_EXECUTION_FAILED             \
                                  : blas_ends(begun, call, at);                \
    } while (0)

#define READS(x, n, incx) vector_rows(x, n, incx, sizeof *(x), false)
#define WRITES(x, n, incx) vector_rows(x, n, incx, sizeof *(x), true)
#define FACTOR(alpha) blas_one(alpha, sizeof *(alpha), false)
#define RESULT(result) blas_one(result, sizeof *(result), true)

#define AXPY(shown, name, integer, type)                                        \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha,    \
                        const type *x, integer incx, type *y, integer incy) {   \
        ENTER_AS(shown, name, handle, n, alpha, x, incx, y, incy);              \
        OPERATION(false, CALL(BELOW(name), handle, n, alpha, x, incx, y, incy), \
                  FACTOR(alpha), READS(x, n, incx), WRITES(y, n, incy),         \
                  READS(y, n, incy));                                           \
    }
#define SCAL(shown, name, integer, type)                                              \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha, type *x, \
                        integer incx) {                                               \
        ENTER_AS(shown, name, handle, n, alpha, x, incx);                             \
        OPERATION(false, CALL(BELOW(name), handle, n, alpha, x, incx), FACTOR(alpha), \
                  WRITES(x, n, incx),                                                 \
                  blas_unless_zero(alpha, sizeof *alpha, READS(x, n, incx)));         \
    }
#define COPY(shown, name, integer, type)                                               \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        type *y, integer incy) {                                       \
        ENTER_AS(shown, name, handle, n, x, incx, y, incy);                            \
        OPERATION(false, CALL(BELOW(name), handle, n, x, incx, y, incy),               \
                  READS(x, n, incx), WRITES(y, n, incy));                              \
    }
/* A number that is made of one vector: nrm2, asum, amax, amin. */
#define MEASURE(shown, name, integer, type, output)                                    \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        output *result) {                                              \
        ENTER_AS(shown, name, handle, n, x, incx, result);                             \
        OPERATION(true, CALL(BELOW(name), handle, n, x, incx, result),                 \
                  READS(x, n, incx), RESULT(result));                                  \
    }
/* One that is a position in it. */
#define PLACE(shown, name, integer, type) MEASURE(shown, name, integer, type, integer)
#define DOT(shown, name, integer, type)                                                \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        const type *y, integer incy, type *result) {                   \
        ENTER_AS(shown, name, handle, n, x, incx, y, incy, result);                    \
        OPERATION(true, CALL(BELOW(name), handle, n, x, incx, y, incy, result),        \
                  READS(x, n, incx), READS(y, n, incy), RESULT(result));               \
    }
#define GEMM(shown, name, integer, type)                                               \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,                   \
                        cublasOperation_t tb, integer m, integer n, integer k,         \
                        const type *alpha, const type *A, integer lda, const type *B,  \
                        integer ldb, const type *beta, type *C, integer ldc) {         \
        ENTER_AS(shown, name, handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, \
                 ldc);                                                                 \
        bool a = ta == CUBLAS_OP_N, b = tb == CUBLAS_OP_N;                             \
        OPERATION(false,                                                               \
                  CALL(BELOW(name), handle, ta, tb, m, n, k, alpha, A, lda, B, ldb,    \
                       beta, C, ldc),                                                  \
                  FACTOR(alpha), FACTOR(beta),                                         \
                  blas_matrix(A, a ? m : k, a ? k : m, lda, sizeof *A, false),         \
                  blas_matrix(B, b ? k : n, b ? n : k, ldb, sizeof *B, false),         \
                  blas_matrix(C, m, n, ldc, sizeof *C, true),                          \
                  blas_unless_zero(beta, sizeof *beta,                                 \
                                   blas_matrix(C, m, n, ldc, sizeof *C, false)));      \
    }

#define BLAS_MOVES(name, parameters, ...)                      \
    cublasStatus_t name parameters {                           \
        ENTER(name, __VA_ARGS__);                              \
        blas_moves(at);                                        \
        return blas_moved(CALL(BELOW(name), __VA_ARGS__), at); \
    }

#define OPAQUE(shown, name, parameters, result, ...)             \
    cublasStatus_t name parameters {                             \
        ENTER_AS(shown, name, __VA_ARGS__);                      \
        OPERATION(result, CALL(BELOW(name), __VA_ARGS__),        \
                  (struct blas_use){.rows = {handle, 0, 0, 0}}); \
    }
/* Its result is a number that may lie on the host. */
#define BLAS_RESULT(name, parameters, ...) \
    OPAQUE(#name, name, parameters, true, __VA_ARGS__)
#define BLAS_OPAQUE(name, parameters, ...) \
    OPAQUE(#name, name, parameters, false, __VA_ARGS__)
#define BLAS_OPAQUE_V2(name, parameters, ...) \
    OPAQUE(#name, name##_v2, parameters, false, __VA_ARGS__)
/* Each with int and with int64_t: NAME, and NAME_64. (The headers make NAME_v2 of NAME,
 * where it is not spelled out at once.) The stand-in has few with int64_t: BLAS_64. */
#if OVER_STANDIN
#define BLAS(name, kind, ...) kind(#name, name##_v2, int, __VA_ARGS__)
#define BLAS_64(name, shown, kind, ...) kind(shown, name, int64_t, __VA_ARGS__)
#else
#define BLAS(name, kind, ...)                \
    kind(#name, name##_v2, int, __VA_ARGS__) \
        kind(#name "_64", name##_v2_64, int64_t, __VA_ARGS__)
#endif

#endif
