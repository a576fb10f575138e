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

/* ---------------------------------------------------------------- without a stream */

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

/* ---------------------------------------------------------------- with one */

CUDA_CPU_INLINE cudaError_t
cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                     cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaMemcpyAsync(dst, src, count, kind, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaMemcpy2DAsync_ptsz(
    void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
    enum cudaMemcpyKind kind, cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind,
                             CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t
cudaMemcpyPeerAsync_ptsz(void *dst, int dstDevice, const void *src, int srcDevice,
                         size_t count, cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, count,
                               CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaMemsetAsync_ptsz(
    void *devPtr, int value, size_t count, cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaMemsetAsync(devPtr, value, count, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t
cudaMemset2DAsync_ptsz(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                       cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaMemset2DAsync(devPtr, pitch, value, width, height, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size,
                                                 cudaStream_t stream) {
    return cudaMallocAsync(devPtr, size, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t stream) {
    return cudaFreeAsync(devPtr, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    return cudaStreamSynchronize(CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
    return cudaStreamQuery(CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaStreamWaitEvent_ptsz(
    cudaStream_t stream, cudaEvent_t event, unsigned int flags CUDA_CPU_DEFAULT(0)) {
    return cudaStreamWaitEvent(CUDA_CPU_OWN(stream), event, flags);
}

CUDA_CPU_INLINE cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn,
                                                    void *userData) {
    return cudaLaunchHostFunc(CUDA_CPU_OWN(stream), fn, userData);
}

CUDA_CPU_INLINE cudaError_t
cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream CUDA_CPU_DEFAULT(0)) {
    return cudaEventRecord(event, CUDA_CPU_OWN(stream));
}

CUDA_CPU_INLINE cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream,
                                                        enum cudaStreamCaptureMode mode) {
    return cudaStreamBeginCapture(CUDA_CPU_OWN(stream), mode);
}

CUDA_CPU_INLINE cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream,
                                                      cudaGraph_t *pGraph) {
    return cudaStreamEndCapture(CUDA_CPU_OWN(stream), pGraph);
}

CUDA_CPU_INLINE cudaError_t cudaStreamIsCapturing_ptsz(
    cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus) {
    return cudaStreamIsCapturing(CUDA_CPU_OWN(stream), pCaptureStatus);
}

CUDA_CPU_INLINE cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t graphExec,
                                                 cudaStream_t stream) {
    return cudaGraphLaunch(graphExec, CUDA_CPU_OWN(stream));
}

#ifdef __cplusplus
template <class T>
CUDA_CPU_INLINE cudaError_t cudaMallocAsync_ptsz(T **devPtr, size_t size,
                                                 cudaStream_t stream) {
    return cudaMallocAsync((void **)(void *)devPtr, size, CUDA_CPU_OWN(stream));
}
#endif

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
