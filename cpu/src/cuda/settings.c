/*
 * settings.c has what a program sets for a device, and what changes nothing here.
 * CUDA Runtime API, "Device Management", "Profiler Control".
 */
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#pragma GCC visibility pop

#include "cuda/device.h"

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    CUDA_CALL;
    unsigned schedule = flags & cudaDeviceScheduleMask;
    if (flags & ~(unsigned)(cudaDeviceScheduleMask | cudaDeviceMapHost |
                            cudaDeviceLmemResizeToMax) ||
        (schedule & (schedule - 1)) != 0)
        return cuda_error(cudaErrorInvalidValue);
    return cuda_error(device_check(device_now()));
}

cudaError_t cudaProfilerStart(void) {
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
    return cudaSuccess;
}
