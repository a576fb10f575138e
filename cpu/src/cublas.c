/*
 * cublas.c has cuBLAS's calls: arguments against the manual, then queued like any other
 * operation. The arithmetic is in blas.c.
 */
#include "handle.h"

#include "blas.h"
#include "capture.h"
#include "device.h"

/* --- Handles ---------------------------------------------------------------------- */

static struct cublasContext *contexts;

bool is_context(cublasHandle_t handle) {
    for (struct cublasContext *context = contexts; context; context = context->next)
        if (context == handle)
            return true;
    return false;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    CUBLAS_CALL;
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
    CUBLAS_CALL;
    for (struct cublasContext **at = &contexts; *at; at = &(*at)->next)
        if (*at == handle) {
            device_wait(handle->device);
            *at = handle->next;
            free(handle);
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    CUBLAS_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    CUBLAS_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!stream)
        return CUBLAS_STATUS_INVALID_VALUE;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    CUBLAS_CALL;
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
    CUBLAS_CALL;
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
    const float *at;
    int64_t rows, columns, ld; // a vector: its length, 1, and the distance of elements
    bool transposed, vector;
};

struct job {
    struct op op;
    void (*calculate)(const struct job *job);
    int device;
    struct scalar alpha, beta;
    struct operand a, b, c; // x, y and nothing; or what is read and the result
    int64_t k;
    float *result; // of a sum, where it is wanted on the host
};

static float value_of(struct scalar scalar) {
    return scalar.device ? *(const float *)shadow(scalar.device) : scalar.value;
}

static void do_gemm(const struct job *j) {
    blas_gemm(j->c.rows, j->c.columns, j->k, value_of(j->alpha),
              (struct blas_matrix){shadow(j->a.at), j->a.ld, j->a.transposed},
              (struct blas_matrix){shadow(j->b.at), j->b.ld, j->b.transposed},
              value_of(j->beta), shadow(j->c.at), j->c.ld);
}

static void do_axpy(const struct job *j) {
    blas_axpy(j->a.rows, value_of(j->alpha), shadow(j->a.at), j->a.ld, shadow(j->b.at),
              j->b.ld);
}

static void do_scal(const struct job *j) {
    blas_scal(j->a.rows, value_of(j->alpha), shadow(j->a.at), j->a.ld);
}

static void do_copy(const struct job *j) {
    blas_copy(j->a.rows, shadow(j->a.at), j->a.ld, shadow(j->b.at), j->b.ld);
}

static void do_nrm2(const struct job *j) {
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

/* Whether a GPU could read or write all of it. */
static bool reachable(const struct operand *o) {
    size_t bytes = extent(o);
    return bytes == 0 || memory_range(o->at, bytes);
}

static bool step(struct op *op) {
    const struct job *job = (const struct job *)op;
    const struct operand alpha = {job->alpha.device, 1, 1, 1, .vector = true};
    const struct operand beta = {job->beta.device, 1, 1, 1, .vector = true};
    op->done = true;
    if (reachable(&job->a) && reachable(&job->b) && reachable(&job->c) &&
        (!alpha.at || reachable(&alpha)) && (!beta.at || reachable(&beta)))
        job->calculate(job);
    else
        device_break(job->device, cudaErrorIllegalAddress);
    return true;
}

static struct op *copy_of(const struct op *op) {
    const struct job *from = (const struct job *)op;
    struct job *to = (struct job *)op_create(sizeof *to, step);
    struct op fresh = to->op;
    *to = *from;
    to->op = fresh;
    to->op.cost = from->op.cost;
    to->op.copy = copy_of;
    return &to->op;
}

/* --- The calls -------------------------------------------------------------------- */

/* What a job has to do, for the modelled clock: additions and multiplications, and
 * numbers to be read and written. */
struct work {
    double flops, floats;
};

/* Queues such a job on the handle's stream. */
static cublasStatus_t queue_job(cublasHandle_t handle,
                                void (*calculate)(const struct job *), struct job job,
                                struct work work) {
    struct stream *stream = stream_of(handle->stream, handle->device);
    if (!stream || capture_in_the_way(stream) ||
        device_broken(stream->device) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    job.calculate = calculate;
    job.device = stream->device;
    if (clock_on)
        job.op.cost = clock_compute(work.flops, work.floats * sizeof(float));
    op_enqueue(copy_of(&job.op), stream);
    return CUBLAS_STATUS_SUCCESS;
}

/* A factor on the host is read now, one on the device when its turn has come. */
static struct scalar scalar_of(cublasHandle_t handle, const float *factor) {
    return handle->mode == CUBLAS_POINTER_MODE_DEVICE ? (struct scalar){0, factor}
                                                      : (struct scalar){*factor, NULL};
}

static struct operand vector(const float *at, int64_t n, int64_t inc) {
    return (struct operand){at, n, 1, inc, .vector = true};
}

static cublasStatus_t axpy(cublasHandle_t handle, int64_t n, const float *alpha,
                           const float *x, int64_t incx, float *y, int64_t incy) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct job job = {.alpha = scalar_of(handle, alpha),
                            .a = vector(x, n, incx),
                            .b = vector(y, n, incy)};
    return queue_job(handle, do_axpy, job,
                     (struct work){2.0 * (double)n, 3.0 * (double)n});
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy) {
    CUBLAS_CALL;
    return axpy(handle, n, alpha, x, incx, y, incy);
}

cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy) {
    CUBLAS_CALL;
    return axpy(handle, n, alpha, x, incx, y, incy);
}

static cublasStatus_t scal(cublasHandle_t handle, int64_t n, const float *alpha, float *x,
                           int64_t incx) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0 || incx <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct job job = {.alpha = scalar_of(handle, alpha), .a = vector(x, n, incx)};
    return queue_job(handle, do_scal, job, (struct work){(double)n, 2.0 * (double)n});
}

cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha, float *x,
                              int incx) {
    CUBLAS_CALL;
    return scal(handle, n, alpha, x, incx);
}

cublasStatus_t cublasSscal_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 float *x, int64_t incx) {
    CUBLAS_CALL;
    return scal(handle, n, alpha, x, incx);
}

static cublasStatus_t copy(cublasHandle_t handle, int64_t n, const float *x, int64_t incx,
                           float *y, int64_t incy) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    const struct job job = {.a = vector(x, n, incx), .b = vector(y, n, incy)};
    return queue_job(handle, do_copy, job, (struct work){0, 2.0 * (double)n});
}

cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *y, int incy) {
    CUBLAS_CALL;
    return copy(handle, n, x, incx, y, incy);
}

cublasStatus_t cublasScopy_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *y, int64_t incy) {
    CUBLAS_CALL;
    return copy(handle, n, x, incx, y, incy);
}

static cublasStatus_t nrm2(cublasHandle_t handle, int64_t n, const float *x, int64_t incx,
                           float *result) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct job job = {.a = vector(x, incx <= 0 || n <= 0 ? 0 : n, incx)};
    const struct work work = {2.0 * (double)job.a.rows, (double)job.a.rows};
    if (handle->mode == CUBLAS_POINTER_MODE_DEVICE) {
        job.b = vector(result, 1, 1);
        return queue_job(handle, do_nrm2, job, work);
    }
    // The host gets the result when the call returns, which a capture cannot give it.
    struct stream *stream = stream_of(handle->stream, handle->device);
    if (stream && stream->capture) {
        capture_spoil(stream);
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    float value = 0;
    job.result = &value;
    cublasStatus_t status = queue_job(handle, do_nrm2, job, work);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    wait_for(stream_end(stream));
    *result = value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *result) {
    CUBLAS_CALL;
    return nrm2(handle, n, x, incx, result);
}

cublasStatus_t cublasSnrm2_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *result) {
    CUBLAS_CALL;
    return nrm2(handle, n, x, incx, result);
}

/* Of floats, which have no imaginary part, CUBLAS_OP_C is CUBLAS_OP_T. */
static struct operand matrix(cublasOperation_t op, const float *at, int64_t rows,
                             int64_t columns, int64_t ld) {
    const bool t = op != CUBLAS_OP_N;
    return (struct operand){at, t ? columns : rows, t ? rows : columns, ld,
                            .transposed = t};
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t opa,
                           cublasOperation_t opb, int64_t m, int64_t n, int64_t k,
                           const float *alpha, const float *a, int64_t lda,
                           const float *b, int64_t ldb, const float *beta, float *c,
                           int64_t ldc) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    struct job job = {.a = matrix(opa, a, m, k, lda),
                      .b = matrix(opb, b, k, n, ldb),
                      .c = {.at = c, .rows = m, .columns = n, .ld = ldc},
                      .k = k};
    if (m < 0 || n < 0 || k < 0 || (unsigned)opa > CUBLAS_OP_C ||
        (unsigned)opb > CUBLAS_OP_C || lda < 1 || lda < job.a.rows || ldb < 1 ||
        ldb < job.b.rows || ldc < 1 || ldc < m || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0)
        return CUBLAS_STATUS_SUCCESS;
    job.alpha = scalar_of(handle, alpha);
    job.beta = scalar_of(handle, beta);
    const double dm = (double)m, dn = (double)n, dk = (double)k;
    const struct work work = {2 * dm * dn * dk, dm * dk + dk * dn + 2 * dm * dn};
    return queue_job(handle, do_gemm, job, work);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k,
                              const float *alpha, const float *A, int lda, const float *B,
                              int ldb, const float *beta, float *C, int ldc) {
    CUBLAS_CALL;
    return gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa,
                                 cublasOperation_t transb, int64_t m, int64_t n,
                                 int64_t k, const float *alpha, const float *A,
                                 int64_t lda, const float *B, int64_t ldb,
                                 const float *beta, float *C, int64_t ldc) {
    CUBLAS_CALL;
    return gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
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
