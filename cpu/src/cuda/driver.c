/*
 * driver.c has the part of CUDA's driver that programs of the runtime use.
 * CUDA Driver API, "Initialization", "Device Management", "Context Management".
 */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "cuda/device.h"

/* The driver's errors have the runtime's numbers. */
static CUresult result_of(cudaError_t error) {
    return (CUresult)error;
}

struct CUctx_st {
    int device;
};
static struct CUctx_st contexts[MAX_DEVICES];

CUresult cuInit(unsigned int flags) {
    int count;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return result_of(cudaGetDeviceCount(&count));
}

CUresult cuDriverGetVersion(int *version) {
    return result_of(cudaDriverGetVersion(version));
}

CUresult cuGetErrorName(CUresult error, const char **out) {
    static const struct {
        CUresult error;
        const char *name;
    } names[] = {
#define NAME(error) {error, #error}
        NAME(CUDA_SUCCESS),
        NAME(CUDA_ERROR_INVALID_VALUE),
        NAME(CUDA_ERROR_OUT_OF_MEMORY),
        NAME(CUDA_ERROR_NOT_INITIALIZED),
        NAME(CUDA_ERROR_NO_DEVICE),
        NAME(CUDA_ERROR_INVALID_DEVICE),
        NAME(CUDA_ERROR_INVALID_CONTEXT),
        NAME(CUDA_ERROR_INVALID_HANDLE),
        NAME(CUDA_ERROR_NOT_FOUND),
        NAME(CUDA_ERROR_NOT_READY),
        NAME(CUDA_ERROR_ILLEGAL_ADDRESS),
        NAME(CUDA_ERROR_NOT_SUPPORTED),
        NAME(CUDA_ERROR_UNKNOWN),
    };
    for (size_t i = 0; out && i < sizeof names / sizeof *names; i++)
        if (names[i].error == error) {
            *out = names[i].name;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **out) {
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    return result_of(cudaGetDeviceCount(count));
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    LOCKED;
    cudaError_t error = out ? device_check(ordinal) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *out = ordinal;
    return result_of(error);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    struct cudaDeviceProp p;
    cudaError_t error =
        name && length > 0 ? cudaGetDeviceProperties(&p, device) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        snprintf(name, (size_t)length, "%s", p.name);
    return result_of(error);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    return result_of(
        cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device));
}

static CUresult give_context(CUcontext *out, int device) {
    LOCKED;
    cudaError_t error = out ? device_check(device) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return result_of(error);
    contexts[device].device = device;
    *out = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out) {
    return give_context(out, device_now());
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    return give_context(out, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    LOCKED;
    return result_of(device_check(device));
}

CUresult cuCtxSetCurrent(CUcontext context) {
    if (!context) // the runtime's first call makes one again
        return CUDA_SUCCESS;
    if (context < contexts || context >= contexts + MAX_DEVICES)
        return CUDA_ERROR_INVALID_CONTEXT;
    return result_of(cudaSetDevice(context->device));
}

CUresult cuCtxGetDevice(CUdevice *device) {
    return result_of(cudaGetDevice(device));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr pointer) {
    LOCKED;
    const struct memory *memory = memory_find((const void *)(uintptr_t)pointer);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    if (start)
        *start = (CUdeviceptr)(uintptr_t)memory->user;
    if (bytes)
        *bytes = memory->bytes;
    return CUDA_SUCCESS;
}
