/*
 * cublas.c: cuBLAS: vectors and matrices that are added, multiplied, measured.
 *
 * A call is an operation on the stream of its handle; one whose result is a number on the
 * host waits for it. Calls that do not stand here are not seen: on GPUs the judge expects
 * operations that nobody told of. cuBLAS, "cuBLAS Helper Function Reference".
 */
#include "answer.h"
#include "timeline.h"

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop
#include <stdlib.h>
#include <string.h>

struct blas {
    int device;
    cudaStream_t stream;
    bool on_device; // factors and results of one number lie there
    struct judge_at made;
};
static struct table handles;

static cublasStatus_t status(cublasStatus_t result, struct judge_at at) {
    if (result == CUBLAS_STATUS_SUCCESS)
        return result;
    const char *text = CALL(BELOW(cublasGetStatusString), result);
    front_failed(true, text, at);
    return result;
}

/* --- Handles -------------------------------------------------------------------- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    ENTER_AS("cublasCreate", cublasCreate_v2, handle);
    cublasStatus_t result = CALL(BELOW(cublasCreate_v2), handle);
    if (result != CUBLAS_STATUS_SUCCESS)
        return status(result, at);
    struct blas *blas = front_alloc(sizeof *blas);
    blas->device = current_device();
    blas->made = at;
    front_in();
    free(table_get(&handles, *handle));
    table_put(&handles, *handle, blas);
    front_out();
    return result;
}

/* Waits for all work of its device. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    ENTER_AS("cublasDestroy", cublasDestroy_v2, handle);
    struct judge *j = front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas)
        judge_wait_device(j, blas->device, at);
    table_remove(&handles, handle);
    front_out();
    struct timeline_wait wait = {
        .at = at, .on_device = true, .device = blas ? blas->device : 0, .world = -1};
    cublasStatus_t result = blas
                                ? HOST_WAITS(&wait, CALL(BELOW(cublasDestroy_v2), handle))
                                : CALL(BELOW(cublasDestroy_v2), handle);
    if (blas) {
        judge_wait_end(front_in(), result == CUBLAS_STATUS_SUCCESS);
        front_out();
    }
    free(blas);
    return status(result, at);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    ENTER_AS("cublasSetStream", cublasSetStream_v2, handle, stream);
    cublasStatus_t result = CALL(BELOW(cublasSetStream_v2), handle, stream);
    front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas && result == CUBLAS_STATUS_SUCCESS)
        blas->stream = stream;
    front_out();
    return status(result, at);
}

#ifdef cublasSetPointerMode
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    ENTER_AS("cublasSetPointerMode", cublasSetPointerMode_v2, handle, mode);
    cublasStatus_t result = CALL(BELOW(cublasSetPointerMode_v2), handle, mode);
    front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas && result == CUBLAS_STATUS_SUCCESS)
        blas->on_device = mode == CUBLAS_POINTER_MODE_DEVICE;
    front_out();
    return status(result, at);
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
    ENTER_AS("cublasGetPointerMode", cublasGetPointerMode_v2, handle, mode);
    return status(CALL(BELOW(cublasGetPointerMode_v2), handle, mode), at);
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    ENTER_AS("cublasGetStream", cublasGetStream_v2, handle, stream);
    return status(CALL(BELOW(cublasGetStream_v2), handle, stream), at);
}
#endif

const char *cublasGetStatusName(cublasStatus_t result) {
    FRONT_PASS(cublasGetStatusName, result);
    judge_looked(front_in());
    front_out();
    return CALL(BELOW(cublasGetStatusName), result);
}

const char *cublasGetStatusString(cublasStatus_t result) {
    FRONT_PASS(cublasGetStatusString, result);
    judge_looked(front_in());
    front_out();
    return CALL(BELOW(cublasGetStatusString), result);
}

/* --- Operations ----------------------------------------------------------------- */

/* What an operation reads or writes: a vector, a matrix, or a number that lies where
 * numbers do. */
struct use {
    struct rows rows;
    bool write, number;
    bool scaled; // only used if its factor is not 0
    const void *factor;
    size_t factor_bytes;
};

/* As far as the host knows: "If beta == 0, C does not have to be a valid input" (cuBLAS,
 * cublas<t>gemm). */
static bool is_used(const struct use *use, const struct blas *blas) {
    static const char zeros[16];
    if (use->scaled && (blas->on_device || !use->factor ||
                        memcmp(use->factor, zeros, use->factor_bytes) == 0))
        return false;
    return !use->number || blas->on_device;
}

enum { MOST_USES = 6 }; // of one operation

struct begun {
    enum { UNSEEN, GOES_ON, WAITS, WRONG } how;
    struct span *span;
};

static struct begun begins(cublasHandle_t handle, const struct use *uses, int nuses,
                           bool result, struct judge_at at) {
    struct judge_range ranges[MOST_USES * MOST_ROWS];
    enum rows_told told[MOST_USES] = {0};
    int n = 0, number = -1;
    bool all = true;
    front_in();
    const struct blas *blas = table_get(&handles, handle);
    struct blas found = blas ? *blas : (struct blas){0};
    front_out();
    if (!blas)
        return (struct begun){UNSEEN, NULL};
    size_t bytes = 0;
    for (int i = 0; i < nuses; i++)
        if (is_used(&uses[i], &found)) {
            told[i] = add_rows(&uses[i].rows, uses[i].write, true, ranges, &n);
            all &= told[i] != NO_ROWS;
            bytes += uses[i].rows.width * uses[i].rows.height;
        }
    struct judge *j = front_in_stream(found.stream, found.device, &number);
    struct begun begun = {number >= 0 ? GOES_ON : UNSEEN, NULL};
    for (int i = 0; i < nuses; i++)
        open_rows(j, &uses[i].rows, told[i]);
    if (number >= 0 &&
        (judge_handle_device(j, number, found.device, found.made, at) ||
         judge_op(j, number, ranges, all ? n : 0, all ? JUDGE_COMPUTES : JUDGE_KERNEL,
                  at)) &&
        front_checks) {
        begun.how = WRONG;
    } else if (number >= 0 && result && !found.on_device) {
        judge_wait_stream(j, number, at);
        begun.how = WAITS;
    }
    front_out();
    if (timeline_on && (begun.how == GOES_ON || begun.how == WAITS)) {
        const struct timeline_op op = {.name = at.call,
                                       .at = at,
                                       .waits = begun.how == WAITS,
                                       .done = begun.how == WAITS,
                                       .bytes = bytes};
        begun.span = timeline_begins(&op, found.stream, found.device);
    }
    return begun;
}

static cublasStatus_t ends(struct begun begun, cublasStatus_t result,
                           struct judge_at at) {
    if (begun.span)
        timeline_ends(begun.span, (int)result);
    if (begun.how == WAITS) {
        judge_wait_end(front_in(), result == CUBLAS_STATUS_SUCCESS);
        front_out();
    }
    return status(result, at);
}

/* The rest of a function that uses what `...` lists. */
#define OPERATION(result, call, ...)                                      \
    do {                                                                  \
        const struct use uses[] = {__VA_ARGS__};                          \
        struct begun begun =                                              \
            begins(handle, uses, sizeof uses / sizeof *uses, result, at); \
        return begun.how == WRONG ? CUBLAS_STATUS_EXECUTION_FAILED        \
                                  : ends(begun, call, at);                \
    } while (0)

static struct use matrix(const void *start, int64_t rows, int64_t columns,
                         int64_t distance, size_t size, bool write) {
    struct use use = {.write = write};
    if (rows > 0 && columns > 0)
        use.rows = (struct rows){start, (size_t)distance * size, (size_t)rows * size,
                                 (size_t)columns, size};
    else
        use.number = true; // nothing
    return use;
}

/* With a negative distance it starts at the far end, and lies in the same place. */
static struct use vector(const void *start, int64_t n, int64_t distance, size_t size,
                         bool write) {
    return matrix(start, 1, n, distance < 0 ? -distance : distance, size, write);
}

static struct use one(const void *start, size_t size, bool write) {
    return (struct use){
        .rows = {start, size, size, 1, size}, .write = write, .number = true};
}

static struct use unless_zero(const void *factor, size_t bytes, struct use use) {
    use.scaled = true;
    use.factor = factor;
    use.factor_bytes = bytes;
    return use;
}

#define READS(x, n, incx) vector(x, n, incx, sizeof *(x), false)
#define WRITES(x, n, incx) vector(x, n, incx, sizeof *(x), true)
#define FACTOR(alpha) one(alpha, sizeof *(alpha), false)
#define RESULT(result) one(result, sizeof *(result), true)

#define AXPY(shown, name, type, integer)                                        \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha,    \
                        const type *x, integer incx, type *y, integer incy) {   \
        ENTER_AS(shown, name, handle, n, alpha, x, incx, y, incy);              \
        OPERATION(false, CALL(BELOW(name), handle, n, alpha, x, incx, y, incy), \
                  FACTOR(alpha), READS(x, n, incx), WRITES(y, n, incy),         \
                  READS(y, n, incy));                                           \
    }
#define SCAL(shown, name, type, integer)                                              \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha, type *x, \
                        integer incx) {                                               \
        ENTER_AS(shown, name, handle, n, alpha, x, incx);                             \
        OPERATION(false, CALL(BELOW(name), handle, n, alpha, x, incx), FACTOR(alpha), \
                  WRITES(x, n, incx),                                                 \
                  unless_zero(alpha, sizeof *alpha, READS(x, n, incx)));              \
    }
#define COPY(shown, name, type, integer)                                               \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        type *y, integer incy) {                                       \
        ENTER_AS(shown, name, handle, n, x, incx, y, incy);                            \
        OPERATION(false, CALL(BELOW(name), handle, n, x, incx, y, incy),               \
                  READS(x, n, incx), WRITES(y, n, incy));                              \
    }
/* A number that is made of one vector: nrm2, asum, amax, amin. */
#define MEASURE(shown, name, type, integer, output)                                    \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        output *result) {                                              \
        ENTER_AS(shown, name, handle, n, x, incx, result);                             \
        OPERATION(true, CALL(BELOW(name), handle, n, x, incx, result),                 \
                  READS(x, n, incx), RESULT(result));                                  \
    }
#define DOT(shown, name, type, integer)                                                \
    cublasStatus_t name(cublasHandle_t handle, integer n, const type *x, integer incx, \
                        const type *y, integer incy, type *result) {                   \
        ENTER_AS(shown, name, handle, n, x, incx, y, incy, result);                    \
        OPERATION(true, CALL(BELOW(name), handle, n, x, incx, y, incy, result),        \
                  READS(x, n, incx), READS(y, n, incy), RESULT(result));               \
    }
#define GEMM(shown, name, type, integer)                                               \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t ta,                   \
                        cublasOperation_t tb, integer m, integer n, integer k,         \
                        const type *alpha, const type *A, integer lda, const type *B,  \
                        integer ldb, const type *beta, type *C, integer ldc) {         \
        ENTER_AS(shown, name, handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, \
                 ldc);                                                                 \
        bool a = ta == CUBLAS_OP_N, b = tb == CUBLAS_OP_N;                             \
        OPERATION(                                                                     \
            false,                                                                     \
            CALL(BELOW(name), handle, ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, \
                 ldc),                                                                 \
            FACTOR(alpha), FACTOR(beta),                                               \
            matrix(A, a ? m : k, a ? k : m, lda, sizeof *A, false),                    \
            matrix(B, b ? k : n, b ? n : k, ldb, sizeof *B, false),                    \
            matrix(C, m, n, ldc, sizeof *C, true),                                     \
            unless_zero(beta, sizeof *beta, matrix(C, m, n, ldc, sizeof *C, false)));  \
    }

AXPY("cublasSaxpy", cublasSaxpy_v2, float, int)
AXPY("cublasSaxpy_64", cublasSaxpy_v2_64, float, int64_t)
#ifdef cublasSgemm
SCAL("cublasSscal", cublasSscal_v2, float, int)
SCAL("cublasSscal_64", cublasSscal_v2_64, float, int64_t)
COPY("cublasScopy", cublasScopy_v2, float, int)
COPY("cublasScopy_64", cublasScopy_v2_64, float, int64_t)
MEASURE("cublasSnrm2", cublasSnrm2_v2, float, int, float)
MEASURE("cublasSnrm2_64", cublasSnrm2_v2_64, float, int64_t, float)
GEMM("cublasSgemm", cublasSgemm_v2, float, int)
GEMM("cublasSgemm_64", cublasSgemm_v2_64, float, int64_t)
#endif

#if !OVER_STANDIN
/* Each with int and with int64_t. */
#define BOTH(function, shown, ...)                 \
    function(#shown, shown##_v2, __VA_ARGS__, int) \
        function(#shown "_64", shown##_v2_64, __VA_ARGS__, int64_t)
#define BOTH_MEASURES(shown, type, output)         \
    MEASURE(#shown, shown##_v2, type, int, output) \
    MEASURE(#shown "_64", shown##_v2_64, type, int64_t, output)
#define BOTH_PLACES(shown, type)                \
    MEASURE(#shown, shown##_v2, type, int, int) \
    MEASURE(#shown "_64", shown##_v2_64, type, int64_t, int64_t)
BOTH(AXPY, cublasDaxpy, double)
BOTH(AXPY, cublasCaxpy, cuComplex)
BOTH(AXPY, cublasZaxpy, cuDoubleComplex)
BOTH(SCAL, cublasDscal, double)
BOTH(SCAL, cublasCscal, cuComplex)
BOTH(SCAL, cublasZscal, cuDoubleComplex)
BOTH(COPY, cublasDcopy, double)
BOTH(COPY, cublasCcopy, cuComplex)
BOTH(COPY, cublasZcopy, cuDoubleComplex)
BOTH(GEMM, cublasDgemm, double)
BOTH(GEMM, cublasCgemm, cuComplex)
BOTH(GEMM, cublasZgemm, cuDoubleComplex)
BOTH(DOT, cublasSdot, float)
BOTH(DOT, cublasDdot, double)
BOTH(DOT, cublasCdotu, cuComplex)
BOTH(DOT, cublasCdotc, cuComplex)
BOTH(DOT, cublasZdotu, cuDoubleComplex)
BOTH(DOT, cublasZdotc, cuDoubleComplex)
BOTH_MEASURES(cublasDnrm2, double, double)
BOTH_MEASURES(cublasScnrm2, cuComplex, float)
BOTH_MEASURES(cublasDznrm2, cuDoubleComplex, double)
BOTH_MEASURES(cublasSasum, float, float)
BOTH_MEASURES(cublasDasum, double, double)
BOTH_MEASURES(cublasScasum, cuComplex, float)
BOTH_MEASURES(cublasDzasum, cuDoubleComplex, double)
BOTH_PLACES(cublasIsamax, float)
BOTH_PLACES(cublasIdamax, double)
BOTH_PLACES(cublasIcamax, cuComplex)
BOTH_PLACES(cublasIzamax, cuDoubleComplex)
BOTH_PLACES(cublasIsamin, float)
BOTH_PLACES(cublasIdamin, double)
BOTH_PLACES(cublasIcamin, cuComplex)
BOTH_PLACES(cublasIzamin, cuDoubleComplex)

/* Numbers that may lie on the host: those of any type. */
#define TYPED_MEASURE(name, integer)                                                    \
    cublasStatus_t name(cublasHandle_t handle, integer n, const void *x,                \
                        cudaDataType type, integer incx, void *result, cudaDataType to, \
                        cudaDataType in) {                                              \
        ENTER(name, handle, n, x, type, incx, result, to, in);                          \
        OPERATION(true, CALL(BELOW(name), handle, n, x, type, incx, result, to, in),    \
                  (struct use){.rows = {x, 0, 0, 0}});                                  \
    }
#define TYPED_PLACE(name, integer)                                           \
    cublasStatus_t name(cublasHandle_t handle, integer n, const void *x,     \
                        cudaDataType type, integer incx, integer *result) {  \
        ENTER(name, handle, n, x, type, incx, result);                       \
        OPERATION(true, CALL(BELOW(name), handle, n, x, type, incx, result), \
                  (struct use){.rows = {x, 0, 0, 0}});                       \
    }
#define TYPED_DOT(name, integer)                                                         \
    cublasStatus_t name(cublasHandle_t handle, integer n, const void *x,                 \
                        cudaDataType xtype, integer incx, const void *y,                 \
                        cudaDataType ytype, integer incy, void *result, cudaDataType to, \
                        cudaDataType in) {                                               \
        ENTER(name, handle, n, x, xtype, incx, y, ytype, incy, result, to, in);          \
        OPERATION(true,                                                                  \
                  CALL(BELOW(name), handle, n, x, xtype, incx, y, ytype, incy, result,   \
                       to, in),                                                          \
                  (struct use){.rows = {x, 0, 0, 0}});                                   \
    }
TYPED_MEASURE(cublasNrm2Ex, int)
TYPED_MEASURE(cublasNrm2Ex_64, int64_t)
TYPED_MEASURE(cublasAsumEx, int)
TYPED_MEASURE(cublasAsumEx_64, int64_t)
TYPED_PLACE(cublasIamaxEx, int)
TYPED_PLACE(cublasIamaxEx_64, int64_t)
TYPED_PLACE(cublasIaminEx, int)
TYPED_PLACE(cublasIaminEx_64, int64_t)
TYPED_DOT(cublasDotEx, int)
TYPED_DOT(cublasDotEx_64, int64_t)
TYPED_DOT(cublasDotcEx, int)
TYPED_DOT(cublasDotcEx_64, int64_t)

/* Between the host and a device, in the default stream: the host waits. */
static void moves(struct judge_at at) {
    int number;
    struct judge *j = front_in_stream(cudaStreamLegacy, -1, &number);
    judge_op(j, number, NULL, 0, JUDGE_KERNEL, at);
    judge_wait_stream(j, number, at);
    front_out();
}

static cublasStatus_t moved(cublasStatus_t result, struct judge_at at) {
    judge_wait_end(front_in(), result == CUBLAS_STATUS_SUCCESS);
    front_out();
    return status(result, at);
}

#define VECTOR(name, integer)                                                    \
    cublasStatus_t name(integer n, integer size, const void *from, integer incx, \
                        void *to, integer incy) {                                \
        ENTER(name, n, size, from, incx, to, incy);                              \
        moves(at);                                                               \
        return moved(CALL(BELOW(name), n, size, from, incx, to, incy), at);      \
    }
#define MATRIX(name, integer)                                                          \
    cublasStatus_t name(integer rows, integer columns, integer size, const void *from, \
                        integer lda, void *to, integer ldb) {                          \
        ENTER(name, rows, columns, size, from, lda, to, ldb);                          \
        moves(at);                                                                     \
        return moved(CALL(BELOW(name), rows, columns, size, from, lda, to, ldb), at);  \
    }
VECTOR(cublasSetVector, int)
VECTOR(cublasSetVector_64, int64_t)
VECTOR(cublasGetVector, int)
VECTOR(cublasGetVector_64, int64_t)
MATRIX(cublasSetMatrix, int)
MATRIX(cublasSetMatrix_64, int64_t)
MATRIX(cublasGetMatrix, int)
MATRIX(cublasGetMatrix_64, int64_t)
#endif
