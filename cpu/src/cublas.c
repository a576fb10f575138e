/*
 * cublas.c: the one sum of cuBLAS that the lessons use, queued like any other operation.
 */
#include "internal.h"

#include <cublas_v2.h>

struct cublasContext {
    int device;
    cudaStream_t stream;
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

struct axpy {
    size_t n;
    float alpha;
    const float *x;
    float *y;
    int64_t incx, incy;
};

static void axpy(void *argument) {
    const struct axpy *a = argument;
    const float *x = shadow(a->x);
    float *restrict y = shadow(a->y);
    if (a->incx == 1 && a->incy == 1) {
        for (size_t i = 0; i < a->n; i++)
            y[i] += a->alpha * x[i];
        return;
    }
    int64_t last = (int64_t)a->n - 1;
    x -= a->incx < 0 ? last * a->incx : 0;
    y -= a->incy < 0 ? last * a->incy : 0;
    for (int64_t i = 0; i <= last; i++)
        y[i * a->incy] += a->alpha * x[i * a->incx];
}

/* True if a GPU could not read or write all of it; reported. */
static bool bad_vector(const char *which, const void *start, size_t bytes, void *site) {
    if (memory_find(start))
        return check_range("cublasSaxpy", site, start, bytes);
    if (library.check == CHECK_OFF)
        return true;
    char where[256];
    struct text text = {0};
    text_add(&text,
             "memory: %s of cublasSaxpy is not memory that a GPU can use\n"
             "  rank %d on %s: cublasSaxpy at %s\n"
             "  Hint: it wants addresses from cudaMalloc; a real GPU stops here with an"
             " illegal memory access.\n",
             which, library.world, library.host, site_text(where, site));
    report(&text, true);
    return true;
}

static cublasStatus_t queue_axpy(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy,
                                 void *site) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (n <= 0)
        return CUBLAS_STATUS_SUCCESS;
    struct stream *stream = stream_of(handle->stream, handle->device);
    if (!alpha || !stream)
        return alpha ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_INVALID_VALUE;
    size_t xbytes = ((size_t)(n - 1) * (size_t)llabs(incx) + 1) * sizeof *x;
    size_t ybytes = ((size_t)(n - 1) * (size_t)llabs(incy) + 1) * sizeof *y;
    if (bad_vector("x", x, xbytes, site) || bad_vector("y", y, ybytes, site))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    struct op *op = op_create(OP_COMPUTE, "cublasSaxpy", site);
    struct axpy *argument = op->staged = must_alloc(sizeof *argument);
    *argument = (struct axpy){(size_t)n, *alpha, x, y, incx, incy};
    op->bytes = sizeof *argument;
    op->function = axpy;
    op_range(op, x, xbytes, false, NULL);
    op_range(op, y, ybytes, true, NULL);
    op_enqueue(op, stream);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy) {
    PUBLIC_CALL;
    return queue_axpy(handle, n, alpha, x, incx, y, incy, CALLER);
}

cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy) {
    PUBLIC_CALL;
    return queue_axpy(handle, n, alpha, x, incx, y, incy, CALLER);
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
