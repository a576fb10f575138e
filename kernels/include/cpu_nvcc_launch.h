/* cpu_nvcc_launch.h: how the host starts kernels, and asks about them. CUDA Runtime API,
 * "Execution Control", "Occupancy", "Memory Management". */
#ifndef CPU_NVCC_LAUNCH_H
#define CPU_NVCC_LAUNCH_H
#pragma GCC system_header

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
    char pad[64];
    int cooperative, priority;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    char pad[4];
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

extern "C" {
/* What clang makes of kernel<<<grid, block, shared, stream>>>(…). */
__attribute__((nomerge)) unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                                              cudaStream_t stream = 0);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                             cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                        cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, const void *func);
cudaError_t cudaFuncSetCacheConfig(const void *func, cudaFuncCache cacheConfig);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
                                                          size_t dynamicSMemSize);
cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
}

/* The templates that nvcc has for kernels and variables of any type. */
#define CPU_HOST template <class T> static inline cudaError_t
CPU_HOST cudaLaunchKernel(T *func, dim3 grid, dim3 block, void **args, size_t shared = 0, cudaStream_t stream = 0) {
    return ::cudaLaunchKernel((const void *)func, grid, block, args, shared, stream);
}
CPU_HOST cudaLaunchCooperativeKernel(T *func, dim3 grid, dim3 block, void **args, size_t shared = 0,
                                     cudaStream_t stream = 0) {
    return ::cudaLaunchCooperativeKernel((const void *)func, grid, block, args, shared, stream);
}
template <class... E, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(E...), A &&...args) {
    return [&](E... values) {
        void *all[] = {(void *)&values..., nullptr};
        return ::cudaLaunchKernelExC(config, (const void *)kernel, all);
    }(static_cast<E>(args)...);
}
CPU_HOST cudaFuncSetAttribute(T *func, cudaFuncAttribute attr, int value) {
    return ::cudaFuncSetAttribute((const void *)func, attr, value);
}
CPU_HOST cudaFuncGetAttributes(cudaFuncAttributes *attr, T *func) {
    return ::cudaFuncGetAttributes(attr, (const void *)func);
}
CPU_HOST cudaFuncSetCacheConfig(T *func, cudaFuncCache config) {
    return ::cudaFuncSetCacheConfig((const void *)func, config);
}
CPU_HOST cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T func, int size, size_t shared = 0) {
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)func, size, shared);
}
CPU_HOST cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T, size_t = 0, int limit = 0) {
    int device;
    cudaDeviceProp properties;
    cudaGetDevice(&device);
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 2;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess)
        *grid = properties.multiProcessorCount * (2048 / *block);
    return error;
}

/* Variables of the device, by the name that the host has for them. */
CPU_HOST cudaGetSymbolAddress(void **devPtr, const T &symbol) {
    return ::cudaGetSymbolAddress(devPtr, (const void *)&symbol);
}
CPU_HOST cudaGetSymbolSize(size_t *size, const T &symbol) { return ::cudaGetSymbolSize(size, (const void *)&symbol); }
#define CPU_COPY(name, parameters, copied)                                               \
    CPU_HOST name parameters {                                                           \
        char *at;                                                                        \
        cudaError_t error = ::cudaGetSymbolAddress((void **)&at, (const void *)&symbol); \
        return error ? error : copied;                                                   \
    }
CPU_COPY(cudaMemcpyToSymbol,
         (const T &symbol, const void *src, size_t count, size_t offset = 0,
          cudaMemcpyKind kind = cudaMemcpyHostToDevice),
         cudaMemcpy(at + offset, src, count, kind))
CPU_COPY(cudaMemcpyFromSymbol,
         (void *dst, const T &symbol, size_t count, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost),
         cudaMemcpy(dst, at + offset, count, kind))
CPU_COPY(cudaMemcpyToSymbolAsync,
         (const T &symbol, const void *src, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream = 0),
         cudaMemcpyAsync(at + offset, src, count, kind, stream))
CPU_COPY(cudaMemcpyFromSymbolAsync,
         (void *dst, const T &symbol, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream = 0),
         cudaMemcpyAsync(dst, at + offset, count, kind, stream))
#undef CPU_COPY
#undef CPU_HOST

#endif
