/*
 * cublas.c: cuBLAS's calls: arguments against the manual, then queued like any other
 * operation. The arithmetic is in blas.c.
 */
#include "blas.h"
#include "internal.h"

#include <cublas_v2.h>

/* --- Handles ---------------------------------------------------------------------- */

struct cublasContext {
    int device;
    cudaStream_t stream;
    cublasPointerMode_t mode;
    struct cublasContext *next;
};

static struct cublasContext *contexts;

static bool is_context(cublasHandle_t handle) {
    for (struct cublasContext *context = contexts; context; context = context->next)
        if (context == handle)
            return true;
    return false;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    PUBLIC_CALL;
    int device;
    if (!handle)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cudaGetDevice(&device) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    struct cublasContext *context = must_alloc(sizeof *context);
    context->device = device;
    context->next = contexts;
    contexts = *handle = context;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    PUBLIC_CALL;
    for (struct cublasContext **at = &contexts; *at; at = &(*at)->next)
        if (*at == handle) {
            for (int s = 0; s < nstreams; s++)
                if (streams[s] && streams[s]->device == handle->device)
                    wait_for(streams[s], streams[s]->queued, "cublasDestroy", CALLER);
            *at = handle->next;
            free(handle);
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    PUBLIC_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    PUBLIC_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!stream)
        return CUBLAS_STATUS_INVALID_VALUE;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    PUBLIC_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
    PUBLIC_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!mode)
        return CUBLAS_STATUS_INVALID_VALUE;
    *mode = handle->mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* --- What is queued, and how it is carried out ------------------------------------ */

/* A factor of the caller's: its value, or where it lies on the device. */
struct scalar {
    float value;
    const float *device;
};

/* A vector, or with columns a matrix. */
struct operand {
    const char *name; // the manual's, for reports
    const float *at;
    int64_t rows, columns, ld; // a vector: its length, 1, and the distance of elements
    bool transposed, vector, write;
};

struct job {
    struct scalar alpha, beta;
    struct operand a, b, c; // x, y and nothing; or what is read and the result
    int64_t k;
    float *result; // of a sum, where it is wanted on the host
};

static float value_of(struct scalar scalar) {
    return scalar.device ? *(const float *)shadow(scalar.device) : scalar.value;
}

static void do_gemm(void *argument) {
    const struct job *j = argument;
    blas_gemm(j->c.rows, j->c.columns, j->k, value_of(j->alpha),
              (struct blas_matrix){shadow(j->a.at), j->a.ld, j->a.transposed},
              (struct blas_matrix){shadow(j->b.at), j->b.ld, j->b.transposed},
              value_of(j->beta), shadow(j->c.at), j->c.ld);
}

static void do_axpy(void *argument) {
    const struct job *j = argument;
    blas_axpy(j->a.rows, value_of(j->alpha), shadow(j->a.at), j->a.ld, shadow(j->b.at),
              j->b.ld);
}

static void do_scal(void *argument) {
    const struct job *j = argument;
    blas_scal(j->a.rows, value_of(j->alpha), shadow(j->a.at), j->a.ld);
}

static void do_copy(void *argument) {
    const struct job *j = argument;
    blas_copy(j->a.rows, shadow(j->a.at), j->a.ld, shadow(j->b.at), j->b.ld);
}

static void do_nrm2(void *argument) {
    const struct job *j = argument;
    float *result = j->result ? j->result : shadow(j->b.at);
    *result = blas_nrm2(j->a.rows, shadow(j->a.at), j->a.ld);
}

/* The bytes from an operand's first to its last element. */
static size_t extent(const struct operand *o) {
    if (o->rows <= 0 || o->columns <= 0)
        return 0;
    size_t last = o->vector
                      ? (size_t)(o->rows - 1) * (size_t)llabs(o->ld)
                      : (size_t)(o->columns - 1) * (size_t)o->ld + (size_t)o->rows - 1;
    return (last + 1) * sizeof(float);
}

/* Notes which memory an operation uses. The rest of a matrix of which these are only some
 * rows may be in use elsewhere. */
static void use(struct op *op, const struct operand *o) {
    size_t bytes = extent(o);
    if (bytes == 0)
        return;
    if (o->vector || o->ld == o->rows || o->columns == 1) {
        op_range(op, o->at, bytes, o->write, NULL);
        return;
    }
    for (int64_t column = 0; column < o->columns; column++)
        op_range(op, o->at + column * o->ld, (size_t)o->rows * sizeof(float), o->write,
                 NULL);
}

/* --- Checks ----------------------------------------------------------------------- */

/* True if a GPU could not read or write all of it; reported. */
static bool unusable(const char *name, const struct operand *o, void *site) {
    size_t bytes = extent(o);
    if (bytes == 0)
        return false;
    if (memory_find(o->at))
        return check_range(name, site, o->at, bytes);
    if (library.check == CHECK_OFF)
        return true;
    char where[256];
    struct text text = {0};
    text_add(&text,
             "memory: %s of %s is not memory that a GPU can use\n"
             "  rank %d on %s: %s at %s\n"
             "  Hint: it wants addresses from cudaMalloc; a real GPU stops here with an"
             " illegal memory access.\n",
             o->name, name, library.world, library.host, name, site_text(where, site));
    report(&text, true);
    return true;
}

/* --- The calls -------------------------------------------------------------------- */

/* Queues a job on the handle's stream, after a look at its operands. */
static cublasStatus_t queue_job(cublasHandle_t handle, const char *name,
                                cudaHostFn_t function, const struct job *job,
                                void *site) {
    struct stream *stream = stream_of(handle->stream, handle->device);
    const struct operand alpha = {"alpha", job->alpha.device, 1, 1, 1, .vector = true};
    const struct operand beta = {"beta", job->beta.device, 1, 1, 1, .vector = true};
    const struct operand *operands[] = {&job->a, &job->b, &job->c,
                                        job->alpha.device ? &alpha : NULL,
                                        job->beta.device ? &beta : NULL};
    if (!stream)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (operands[i] && unusable(name, operands[i], site))
            return CUBLAS_STATUS_EXECUTION_FAILED;
    struct op *op = op_create(OP_COMPUTE, name, site);
    op->staged = must_alloc(sizeof *job);
    memcpy(op->staged, job, sizeof *job);
    op->bytes = sizeof *job;
    op->function = function;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (operands[i])
            use(op, operands[i]);
    op_enqueue(op, stream);
    return CUBLAS_STATUS_SUCCESS;
}

/* A factor on the host is read now, one on the device when its turn has come. */
static struct scalar scalar_of(cublasHandle_t handle, const float *factor) {
    return handle->mode == CUBLAS_POINTER_MODE_DEVICE ? (struct scalar){0, factor}
                                                      : (struct scalar){*factor, NULL};
}

static struct operand vector(const char *name, const float *at, int64_t n, int64_t inc,
                             bool write) {
    return (struct operand){name, at, n, 1, inc, .vector = true, .write = write};
}

static cublasStatus_t axpy(cublasHandle_t handle, int64_t n, const float *alpha,
                           const float *x, int64_t incx, float *y, int64_t incy,
                           void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct job job = {.alpha = scalar_of(handle, alpha),
                            .a = vector("x", x, n, incx, false),
                            .b = vector("y", y, n, incy, true)};
    return queue_job(handle, "cublasSaxpy", do_axpy, &job, site);
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy) {
    PUBLIC_CALL;
    return axpy(handle, n, alpha, x, incx, y, incy, CALLER);
}

cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy) {
    PUBLIC_CALL;
    return axpy(handle, n, alpha, x, incx, y, incy, CALLER);
}

static cublasStatus_t scal(cublasHandle_t handle, int64_t n, const float *alpha, float *x,
                           int64_t incx, void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0 || incx <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct job job = {.alpha = scalar_of(handle, alpha),
                            .a = vector("x", x, n, incx, true)};
    return queue_job(handle, "cublasSscal", do_scal, &job, site);
}

cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha, float *x,
                              int incx) {
    PUBLIC_CALL;
    return scal(handle, n, alpha, x, incx, CALLER);
}

cublasStatus_t cublasSscal_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 float *x, int64_t incx) {
    PUBLIC_CALL;
    return scal(handle, n, alpha, x, incx, CALLER);
}

static cublasStatus_t copy(cublasHandle_t handle, int64_t n, const float *x, int64_t incx,
                           float *y, int64_t incy, void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    const struct job job = {.a = vector("x", x, n, incx, false),
                            .b = vector("y", y, n, incy, true)};
    return queue_job(handle, "cublasScopy", do_copy, &job, site);
}

cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *y, int incy) {
    PUBLIC_CALL;
    return copy(handle, n, x, incx, y, incy, CALLER);
}

cublasStatus_t cublasScopy_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *y, int64_t incy) {
    PUBLIC_CALL;
    return copy(handle, n, x, incx, y, incy, CALLER);
}

static cublasStatus_t nrm2(cublasHandle_t handle, int64_t n, const float *x, int64_t incx,
                           float *result, void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct job job = {.a = vector("x", x, incx <= 0 || n <= 0 ? 0 : n, incx, false)};
    if (handle->mode == CUBLAS_POINTER_MODE_DEVICE) {
        job.b = vector("result", result, 1, 1, true);
        return queue_job(handle, "cublasSnrm2", do_nrm2, &job, site);
    }
    // The host gets the result when the call returns, which a capture cannot give it.
    struct stream *stream = stream_of(handle->stream, handle->device);
    if (stream && stream->capturing) {
        stream->capturing->invalid = true;
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    float value = 0;
    job.result = &value;
    cublasStatus_t status = queue_job(handle, "cublasSnrm2", do_nrm2, &job, site);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    wait_for(stream, stream->queued, "cublasSnrm2", site);
    *result = value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *result) {
    PUBLIC_CALL;
    return nrm2(handle, n, x, incx, result, CALLER);
}

cublasStatus_t cublasSnrm2_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *result) {
    PUBLIC_CALL;
    return nrm2(handle, n, x, incx, result, CALLER);
}

/* Of floats, which have no imaginary part, CUBLAS_OP_C is CUBLAS_OP_T. */
static struct operand matrix(const char *name, cublasOperation_t op, const float *at,
                             int64_t rows, int64_t columns, int64_t ld) {
    const bool t = op != CUBLAS_OP_N;
    return (struct operand){
        name, at, t ? columns : rows, t ? rows : columns, ld, .transposed = t};
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t opa,
                           cublasOperation_t opb, int64_t m, int64_t n, int64_t k,
                           const float *alpha, const float *a, int64_t lda,
                           const float *b, int64_t ldb, const float *beta, float *c,
                           int64_t ldc, void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    struct job job = {.a = matrix("A", opa, a, m, k, lda),
                      .b = matrix("B", opb, b, k, n, ldb),
                      .c = {"C", c, m, n, ldc, .write = true},
                      .k = k};
    if (m < 0 || n < 0 || k < 0 || (unsigned)opa > CUBLAS_OP_C ||
        (unsigned)opb > CUBLAS_OP_C || lda < 1 || lda < job.a.rows || ldb < 1 ||
        ldb < job.b.rows || ldc < 1 || ldc < m || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0)
        return CUBLAS_STATUS_SUCCESS;
    job.alpha = scalar_of(handle, alpha);
    job.beta = scalar_of(handle, beta);
    return queue_job(handle, "cublasSgemm", do_gemm, &job, site);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k,
                              const float *alpha, const float *A, int lda, const float *B,
                              int ldb, const float *beta, float *C, int ldc) {
    PUBLIC_CALL;
    return gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc,
                CALLER);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa,
                                 cublasOperation_t transb, int64_t m, int64_t n,
                                 int64_t k, const float *alpha, const float *A,
                                 int64_t lda, const float *B, int64_t ldb,
                                 const float *beta, float *C, int64_t ldc) {
    PUBLIC_CALL;
    return gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc,
                CALLER);
}

/* --- Names of errors -------------------------------------------------------------- */

static const struct {
    cublasStatus_t status;
    const char *name, *text;
} statuses[] = {
#define STATUS(name, text) \
    { name, #name, text }
    STATUS(CUBLAS_STATUS_SUCCESS, "success"),
    STATUS(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
    STATUS(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"),
    STATUS(CUBLAS_STATUS_INVALID_VALUE,
           "an unsupported value or parameter was passed to the function"),
    STATUS(CUBLAS_STATUS_ARCH_MISMATCH,
           "the function requires an architectural feature absent from the device"),
    STATUS(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed"),
    STATUS(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"),
    STATUS(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
    STATUS(CUBLAS_STATUS_NOT_SUPPORTED, "the requested functionality is not supported"),
    STATUS(CUBLAS_STATUS_LICENSE_ERROR, "the license check failed"),
#undef STATUS
};

const char *cublasGetStatusName(cublasStatus_t status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].name;
    return "unrecognized status";
}

const char *cublasGetStatusString(cublasStatus_t status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "unrecognized status";
}
