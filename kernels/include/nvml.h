/* nvml.h: how many GPUs there are, and their names. */
#ifndef CPU_NVCC_NVML_H
#define CPU_NVCC_NVML_H
#pragma GCC system_header
#include <string.h>
#include "cuda_runtime.h"

typedef enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2 } nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
enum { NVML_DEVICE_NAME_BUFFER_SIZE = 64, NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96 };
#define nvmlInit_v2 nvmlInit
#define nvmlDeviceGetCount_v2 nvmlDeviceGetCount
#define nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex

static inline nvmlReturn_t nvmlInit(void) { return NVML_SUCCESS; }
static inline nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
static inline const char *nvmlErrorString(nvmlReturn_t result) {
    return result == NVML_SUCCESS ? "The operation was successful" : "Invalid argument";
}
static inline nvmlReturn_t nvmlDeviceGetCount(unsigned *count) {
    int n = 0;
    cudaGetDeviceCount(&n);
    *count = (unsigned)n;
    return NVML_SUCCESS;
}
static inline nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
    unsigned count;
    nvmlDeviceGetCount(&count);
    *device = (nvmlDevice_t)(size_t)(index + 1);
    return index < count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
static inline nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, (int)(size_t)device - 1) != cudaSuccess ||
        strlen(properties.name) >= length)
        return NVML_ERROR_INVALID_ARGUMENT;
    strcpy(name, properties.name);
    return NVML_SUCCESS;
}
#endif
