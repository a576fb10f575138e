/*
 * The part of cuda_runtime.h for a program that defines
 * CUDA_API_PER_THREAD_DEFAULT_STREAM before it includes it: stream 0 is then each
 * thread's own, cudaStreamPerThread, and so is that of the calls without a stream (CUDA
 * Programming Guide, "Default Stream"). NCCL and cuBLAS were not compiled so: their
 * stream 0 is the one of all threads.
 *
 * The names with _ptds and _ptsz are NVIDIA's. They are inlined always, so that the
 * return address that the library sees lies in the program's own function.
 */
#ifndef CUDA_PER_THREAD_H_CPU
#define CUDA_PER_THREAD_H_CPU

#define CUDA_CPU_INLINE __attribute__((always_inline)) static inline
#define CUDA_CPU_OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)

/* Without a stream. */
CUDA_CPU_INLINE cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count,
                                            enum cudaMemcpyKind kind) {
    cudaError_t result = cudaMemcpyAsync(dst, src, count, kind, cudaStreamPerThread);
    return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : result;
}

CUDA_CPU_INLINE cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src,
                                              size_t spitch, size_t width, size_t height,
                                              enum cudaMemcpyKind kind) {
    cudaError_t result = cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind,
                                           cudaStreamPerThread);
    return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : result;
}

CUDA_CPU_INLINE cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count) {
    return cudaMemsetAsync(devPtr, value, count, cudaStreamPerThread);
}

CUDA_CPU_INLINE cudaError_t cudaMemset2D_ptds(void *devPtr, size_t pitch, int value,
                                              size_t width, size_t height) {
    return cudaMemset2DAsync(devPtr, pitch, value, width, height, cudaStreamPerThread);
}

/* With one. */
#define CUDA_CPU_ON_STREAM(name, parameters, ...)        \
    CUDA_CPU_INLINE cudaError_t name##_ptsz parameters { \
        return name(__VA_ARGS__);                        \
    }
CUDA_CPU_ON_STREAM(cudaMemcpyAsync,
                   (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                    cudaStream_t stream CUDA_CPU_DEFAULT(0)),
                   dst, src, count, kind, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaMemcpy2DAsync,
                   (void *dst, size_t dpitch, const void *src, size_t spitch,
                    size_t width, size_t height, enum cudaMemcpyKind kind,
                    cudaStream_t stream CUDA_CPU_DEFAULT(0)),
                   dst, dpitch, src, spitch, width, height, kind, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaMemcpyPeerAsync,
                   (void *dst, int dstDevice, const void *src, int srcDevice,
                    size_t count, cudaStream_t stream CUDA_CPU_DEFAULT(0)),
                   dst, dstDevice, src, srcDevice, count, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaMemsetAsync,
                   (void *devPtr, int value, size_t count,
                    cudaStream_t stream CUDA_CPU_DEFAULT(0)),
                   devPtr, value, count, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaMemset2DAsync,
                   (void *devPtr, size_t pitch, int value, size_t width, size_t height,
                    cudaStream_t stream CUDA_CPU_DEFAULT(0)),
                   devPtr, pitch, value, width, height, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaMallocAsync, (void **devPtr, size_t size, cudaStream_t stream),
                   devPtr, size, CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaFreeAsync, (void *devPtr, cudaStream_t stream), devPtr,
                   CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaStreamSynchronize, (cudaStream_t stream), CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaStreamQuery, (cudaStream_t stream), CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaStreamWaitEvent,
                   (cudaStream_t stream, cudaEvent_t event,
                    unsigned int flags CUDA_CPU_DEFAULT(0)),
                   CUDA_CPU_OWN(stream), event, flags)
CUDA_CPU_ON_STREAM(cudaLaunchHostFunc,
                   (cudaStream_t stream, cudaHostFn_t fn, void *userData),
                   CUDA_CPU_OWN(stream), fn, userData)
CUDA_CPU_ON_STREAM(cudaEventRecord,
                   (cudaEvent_t event, cudaStream_t stream CUDA_CPU_DEFAULT(0)), event,
                   CUDA_CPU_OWN(stream))
CUDA_CPU_ON_STREAM(cudaStreamBeginCapture,
                   (cudaStream_t stream, enum cudaStreamCaptureMode mode),
                   CUDA_CPU_OWN(stream), mode)
CUDA_CPU_ON_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *pGraph),
                   CUDA_CPU_OWN(stream), pGraph)
CUDA_CPU_ON_STREAM(cudaStreamIsCapturing,
                   (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus),
                   CUDA_CPU_OWN(stream), pCaptureStatus)
CUDA_CPU_ON_STREAM(cudaGraphLaunch, (cudaGraphExec_t graphExec, cudaStream_t stream),
                   graphExec, CUDA_CPU_OWN(stream))

#ifdef __cplusplus
template <class T>
CUDA_CPU_INLINE cudaError_t cudaMallocAsync_ptsz(T **devPtr, size_t size,
                                                 cudaStream_t stream) {
    return cudaMallocAsync((void **)(void *)devPtr, size, CUDA_CPU_OWN(stream));
}
#endif

#undef CUDA_CPU_ON_STREAM
#undef CUDA_CPU_INLINE

#define cudaMemcpy cudaMemcpy_ptds
#define cudaMemcpy2D cudaMemcpy2D_ptds
#define cudaMemset cudaMemset_ptds
#define cudaMemset2D cudaMemset2D_ptds
#define cudaMemcpyAsync cudaMemcpyAsync_ptsz
#define cudaMemcpy2DAsync cudaMemcpy2DAsync_ptsz
#define cudaMemcpyPeerAsync cudaMemcpyPeerAsync_ptsz
#define cudaMemsetAsync cudaMemsetAsync_ptsz
#define cudaMemset2DAsync cudaMemset2DAsync_ptsz
#define cudaMallocAsync cudaMallocAsync_ptsz
#define cudaFreeAsync cudaFreeAsync_ptsz
#define cudaStreamSynchronize cudaStreamSynchronize_ptsz
#define cudaStreamQuery cudaStreamQuery_ptsz
#define cudaStreamWaitEvent cudaStreamWaitEvent_ptsz
#define cudaLaunchHostFunc cudaLaunchHostFunc_ptsz
#define cudaEventRecord cudaEventRecord_ptsz
#define cudaStreamBeginCapture cudaStreamBeginCapture_ptsz
#define cudaStreamEndCapture cudaStreamEndCapture_ptsz
#define cudaStreamIsCapturing cudaStreamIsCapturing_ptsz
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#endif
