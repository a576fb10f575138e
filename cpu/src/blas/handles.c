/*
 * handles.c has cuBLAS's handles, what is set of them, and the names of its errors.
 */
#include "blas/handles.h"

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
    struct cublasContext *context = base_alloc(sizeof *context);
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

#define SETTING(set, get, type, field, known)                \
    cublasStatus_t set(cublasHandle_t handle, type value) {  \
        CUBLAS_CALL;                                         \
        if (!is_context(handle))                             \
            return CUBLAS_STATUS_NOT_INITIALIZED;            \
        if (!(known))                                        \
            return CUBLAS_STATUS_INVALID_VALUE;              \
        handle->field = value;                               \
        return CUBLAS_STATUS_SUCCESS;                        \
    }                                                        \
    cublasStatus_t get(cublasHandle_t handle, type *value) { \
        CUBLAS_CALL;                                         \
        if (!is_context(handle))                             \
            return CUBLAS_STATUS_NOT_INITIALIZED;            \
        if (!value)                                          \
            return CUBLAS_STATUS_INVALID_VALUE;              \
        *value = handle->field;                              \
        return CUBLAS_STATUS_SUCCESS;                        \
    }
SETTING(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream, true)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, mode,
        value == CUBLAS_POINTER_MODE_HOST || value == CUBLAS_POINTER_MODE_DEVICE)
SETTING(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math, true)

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
