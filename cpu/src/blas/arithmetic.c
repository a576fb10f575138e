/*
 * arithmetic.c: the arithmetic behind cuBLAS.
 */
#include "blas/arithmetic.h"

#include "data/rounding.h"

#include <stdlib.h>
#include <string.h>

/* A function compiled for several kinds of processors; the best is taken when the program
 * starts. Sums keep their order and products are rounded before they are added
 * (-ffp-contract=off), so that all kinds give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_THIS_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_THIS_PROCESSOR
#endif

/* C is made in tiles of ROWS x COLUMNS, whose sums stay in registers. For that the parts
 * of A and B in use are packed: DEPTH rows and columns at a time, in the order in which
 * the tiles read them, with zeros where a tile goes beyond the matrix. */
enum { ROWS = 16, COLUMNS = 6, DEPTH = 256, A_BLOCK = 8 * ROWS, B_BLOCK = 64 * COLUMNS };

typedef float column __attribute__((vector_size(ROWS * sizeof(float))));

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Packs `length` lines of `width` numbers each, in strips of `strip` numbers: line after
 * line of the first strip, then of the second. Number i of line p is at
 * from[i * across + p * along]. */
static void pack(float *restrict to, const float *restrict from, int64_t width,
                 int64_t length, int64_t strip, int64_t across, int64_t along) {
    for (int64_t first = 0; first < width; first += strip, to += strip * length) {
        const float *at = from + first * across;
        int64_t there = least(strip, width - first);
        if (there < strip)
            memset(to, 0, (size_t)(strip * length) * sizeof *to);
        if (across == 1)
            for (int64_t p = 0; p < length; p++)
                memcpy(to + p * strip, at + p * along, (size_t)there * sizeof *to);
        else
            for (int64_t i = 0; i < there; i++)
                for (int64_t p = 0; p < length; p++)
                    to[p * strip + i] = at[i * across + p * along];
    }
}

/* One tile: sums[j] is column j of the product of a strip of A and a strip of B. */
FOR_THIS_PROCESSOR
static void multiply(int64_t length, const float *restrict a, const float *restrict b,
                     float *restrict sums) {
    column s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};
    for (int64_t p = 0; p < length; p++, a += ROWS, b += COLUMNS) {
        column of_a;
        memcpy(&of_a, a, sizeof of_a);
        s0 += of_a * b[0];
        s1 += of_a * b[1];
        s2 += of_a * b[2];
        s3 += of_a * b[3];
        s4 += of_a * b[4];
        s5 += of_a * b[5];
    }
    const column all[COLUMNS] = {s0, s1, s2, s3, s4, s5};
    memcpy(sums, all, sizeof all);
}

/* C = beta * C. */
static void prepare(int64_t m, int64_t n, float beta, float *c, int64_t ldc) {
    for (int64_t j = 0; j < n && beta != 1; j++) {
        if (beta == 0)
            memset(c + j * ldc, 0, (size_t)m * sizeof *c);
        for (int64_t i = 0; i < m && beta != 0; i++)
            c[i + j * ldc] *= beta;
    }
}

void blas_gemm(int64_t m, int64_t n, int64_t k, float alpha, struct blas_matrix a,
               struct blas_matrix b, float beta, float *c, int64_t ldc) {
    AS_ON_A_GPU;
    static float packed_a[A_BLOCK * DEPTH], packed_b[B_BLOCK * DEPTH];
    float sums[ROWS * COLUMNS];
    prepare(m, n, beta, c, ldc);
    if (alpha == 0)
        return;
    for (int64_t p = 0; p < k; p += DEPTH) {
        const int64_t depth = least(DEPTH, k - p);
        for (int64_t j = 0; j < n; j += B_BLOCK) {
            const int64_t columns = least(B_BLOCK, n - j);
            pack(packed_b, b.at + (b.transposed ? j + p * b.ld : p + j * b.ld), columns,
                 depth, COLUMNS, b.transposed ? 1 : b.ld, b.transposed ? b.ld : 1);
            for (int64_t i = 0; i < m; i += A_BLOCK) {
                const int64_t rows = least(A_BLOCK, m - i);
                pack(packed_a, a.at + (a.transposed ? p + i * a.ld : i + p * a.ld), rows,
                     depth, ROWS, a.transposed ? a.ld : 1, a.transposed ? 1 : a.ld);
                for (int64_t y = 0; y < columns; y += COLUMNS)
                    for (int64_t x = 0; x < rows; x += ROWS) {
                        multiply(depth, packed_a + x * depth, packed_b + y * depth, sums);
                        for (int64_t v = 0; v < least(COLUMNS, columns - y); v++) {
                            float *to = c + i + x + (j + y + v) * ldc;
                            for (int64_t u = 0; u < least(ROWS, rows - x); u++)
                                to[u] += alpha * sums[v * ROWS + u];
                        }
                    }
            }
        }
    }
}

/* Where element 0 of a vector lies. */
#define START(x, n, inc) ((inc) < 0 ? (x) - ((n)-1) * (inc) : (x))

void blas_axpy(int64_t n, float alpha, const float *x, int64_t incx, float *y,
               int64_t incy) {
    AS_ON_A_GPU;
    if (incx == 1 && incy == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] += alpha * x[i];
        return;
    }
    x = START(x, n, incx);
    y = START(y, n, incy);
    for (int64_t i = 0; i < n; i++)
        y[i * incy] += alpha * x[i * incx];
}

void blas_scal(int64_t n, float alpha, float *x, int64_t incx) {
    AS_ON_A_GPU;
    for (int64_t i = 0; i < n; i++)
        x[i * incx] *= alpha;
}

void blas_copy(int64_t n, const float *x, int64_t incx, float *y, int64_t incy) {
    x = START(x, n, incx);
    y = START(y, n, incy);
    for (int64_t i = 0; i < n; i++)
        y[i * incy] = x[i * incx];
}
