/*
 * settings.c has what a program sets for a device, and what changes nothing here.
 * CUDA Runtime API, "Device Management", "Profiler Control".
 */
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#pragma GCC visibility pop

#include "cuda/device.h"

enum { LIMITS = cudaLimitPersistingL2CacheSize + 1 };

static struct {
    size_t limits[LIMITS];
    bool set[LIMITS];
} settings[MAX_DEVICES];

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    CUDA_CALL;
    unsigned schedule = flags & cudaDeviceScheduleMask;
    if (flags & ~(unsigned)(cudaDeviceScheduleMask | cudaDeviceMapHost |
                            cudaDeviceLmemResizeToMax) ||
        (schedule & (schedule - 1)) != 0)
        return cuda_error(cudaErrorInvalidValue);
    return cuda_error(device_check(device_now()));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    CUDA_CALL;
    cudaError_t error = device_check(device_now());
    if ((unsigned)limit >= LIMITS)
        error = cudaErrorUnsupportedLimit;
    if (error != cudaSuccess)
        return cuda_error(error);
    settings[device_now()].limits[limit] = value;
    settings[device_now()].set[limit] = true;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    CUDA_CALL;
    static const size_t before[LIMITS] = {1024, 1 << 20, 8 << 20, 0, 2048, 64, 0};
    int device = device_now();
    cudaError_t error = device_check(device);
    if (!value || (unsigned)limit >= LIMITS)
        error = value ? cudaErrorUnsupportedLimit : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *value =
            settings[device].set[limit] ? settings[device].limits[limit] : before[limit];
    return cuda_error(error);
}

cudaError_t cudaProfilerStart(void) {
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
    return cudaSuccess;
}
