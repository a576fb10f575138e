/*
 * cublas.c has the one sum of cuBLAS that the lessons use, queued like any other
 * operation.
 */
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "capture.h"
#include "device.h"

struct cublasContext {
    int device;
    cudaStream_t stream;
    struct cublasContext *next;
};

static struct cublasContext *contexts;

#define CUBLAS_CALL                            \
    if (in_host_function())                    \
        return CUBLAS_STATUS_EXECUTION_FAILED; \
    LOCKED

static bool is_context(cublasHandle_t handle) {
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

struct axpy_op { // y += alpha * x
    struct op op;
    int device;
    size_t n;
    float alpha;
    const float *x;
    float *y;
    int64_t incx, incy;
};

static size_t bytes_of(size_t n, int64_t increment) {
    return ((n - 1) * (size_t)llabs(increment) + 1) * sizeof(float);
}

static bool step(struct op *op) {
    const struct axpy_op *a = (const struct axpy_op *)op;
    op->done = true;
    if (!memory_range(a->x, bytes_of(a->n, a->incx)) ||
        !memory_range(a->y, bytes_of(a->n, a->incy))) {
        device_break(a->device, cudaErrorIllegalAddress);
        return true;
    }
    const float *x = shadow(a->x);
    float *restrict y = shadow(a->y);
    if (a->incx == 1 && a->incy == 1) {
        for (size_t i = 0; i < a->n; i++)
            y[i] += a->alpha * x[i];
        return true;
    }
    int64_t last = (int64_t)a->n - 1;
    x -= a->incx < 0 ? last * a->incx : 0;
    y -= a->incy < 0 ? last * a->incy : 0;
    for (int64_t i = 0; i <= last; i++)
        y[i * a->incy] += a->alpha * x[i * a->incx];
    return true;
}

static struct op *copy(const struct op *op) {
    const struct axpy_op *from = (const struct axpy_op *)op;
    struct axpy_op *to = (struct axpy_op *)op_create(sizeof *to, step);
    struct op fresh = to->op;
    *to = *from;
    to->op = fresh;
    to->op.cost = from->op.cost;
    to->op.copy = copy;
    return &to->op;
}

static cublasStatus_t queue_axpy(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct stream *stream = stream_of(handle->stream, handle->device);
    if (!stream || capture_in_the_way(stream) ||
        device_broken(stream->device) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    struct axpy_op model = {.device = stream->device,
                            .n = (size_t)n,
                            .alpha = *alpha,
                            .x = x,
                            .y = y,
                            .incx = incx,
                            .incy = incy};
    if (clock_on)
        model.op.cost = clock_compute(2.0 * (double)n, 12.0 * (double)n);
    op_enqueue(copy(&model.op), stream);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy) {
    CUBLAS_CALL;
    return queue_axpy(handle, n, alpha, x, incx, y, incy);
}

cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy) {
    CUBLAS_CALL;
    return queue_axpy(handle, n, alpha, x, incx, y, incy);
}

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
