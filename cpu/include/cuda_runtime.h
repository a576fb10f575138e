/*
 * cuda_runtime.h of the CPU build: no GPU is used.
 *
 * It declares the part of the CUDA runtime, version 13.0, that a C program which calls
 * NCCL needs: devices, memory, copies, streams, events, graphs. Names, types, values and
 * signatures are those that NVIDIA publishes, so a program that keeps to these calls
 * compiles unchanged against this header and against the CUDA Toolkit. "Device memory" is
 * host memory here, set apart from the rest; a stream is a queue that every wait
 * advances. What device memory, a stream, an event and a kernel are stands in
 * common/cuda.md.
 *
 * The rules in the comments come from the manual "CUDA Runtime API"; each group names the
 * page. Unless a comment says otherwise, a call returns cudaSuccess, sizes are in bytes,
 * a null output pointer gives cudaErrorInvalidValue, and a call may also return the error
 * of an operation that was queued earlier. Every error that a call returns is kept, for
 * the calling thread, until cudaGetLastError is called; cudaErrorNotReady from a query is
 * the exception: it is an answer, not an error.
 */
#ifndef CUDA_RUNTIME_H_CPU
#define CUDA_RUNTIME_H_CPU

/* A CUDA Toolkit that is installed beside this one has nothing to add. */
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__

#include "absent/cuda_calls.h"
#include "driver_types.h"
#ifdef __cplusplus
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <type_traits>
#endif

/* Of functions that kernels may call, too, the host's half is compiled. Where a kernel or
 * <<< >>> stops the compiler, it says this as well. */
#define CPU_NEEDS_NVCC \
    "kernels and <<< >>> need a file named .cu, and the compiler kernels/cpu-nvcc (lesson 25)"
#define __host__
#define __device__
#define __global__ __attribute__((deprecated(CPU_NEEDS_NVCC)))
#define __shared__
#define __constant__
#define __forceinline__ __inline__ __attribute__((always_inline))
#if !defined __CUDACC__ && defined __has_attribute
#if __has_attribute(unavailable)
extern __attribute__((unavailable(CPU_NEEDS_NVCC))) const uint3 threadIdx, blockIdx;
#endif
#endif

#define CUDART_VERSION 13000

/* Default arguments exist in C++ only. */
#ifdef __cplusplus
#define CUDA_CPU_DEFAULT(value) = value
#else
#define CUDA_CPU_DEFAULT(value)
#endif

/* Inlined always: the return address that the library sees lies in the program's own
 * function. */
#define CUDA_CPU_INLINE __attribute__((always_inline)) inline

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- errors
 * CUDA Runtime API, Error Handling. */

/* The last error of the calling thread; sets it back to cudaSuccess. */
cudaError_t cudaGetLastError(void);

/* The last error of the calling thread; leaves it as it is. */
cudaError_t cudaPeekAtLastError(void);

/* The enumerator's name, such as "cudaErrorNoDevice"; "unrecognized error code" for a
 * number that stands for no error. The text is never null and is not to be freed. */
const char *cudaGetErrorName(cudaError_t error);

/* The same in words, such as "no CUDA-capable device is detected". */
const char *cudaGetErrorString(cudaError_t error);

/* ---------------------------------------------------------------- versions
 * CUDA Runtime API, Version Management. 1000 * major + 10 * minor. */

/* Writes the newest CUDA version that the driver supports. */
cudaError_t cudaDriverGetVersion(int *driverVersion);

/* Writes the version of this runtime, CUDART_VERSION. */
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);

/* ---------------------------------------------------------------- devices
 * CUDA Runtime API, Device Management. A device outside 0 … count - 1:
 * cudaErrorInvalidDevice. */

/* Writes the number of devices: those in CUDA_VISIBLE_DEVICES if it is set, else
 * CPU_DEVICES, else one for each rank on this node (8 without MPI). None: writes 0 and
 * returns cudaErrorNoDevice. */
cudaError_t cudaGetDeviceCount(int *count);

/* Makes `device` the current one of the calling thread: what it allocates and creates
 * from now on belongs there. Every thread starts with device 0. */
cudaError_t cudaSetDevice(int device);

/* Writes the current device of the calling thread. */
cudaError_t cudaGetDevice(int *device);

/* Fills `prop` with what is known of `device`. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);

/* Writes one attribute of `device`. An attribute that does not exist:
 * cudaErrorInvalidValue. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);

/* Writes "domain:bus:device.function" in hexadecimal, such as "0000:01:00.0", into the
 * `len` bytes at `pciBusId`; 13 hold it with its final zero. Too short:
 * cudaErrorInvalidValue. */
cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device);

/* Writes the device that has this PCI bus id. None has it: cudaErrorInvalidDevice; text
 * that is no bus id: cudaErrorInvalidValue. */
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId);

/* Waits until everything queued on any stream of the current device has happened. */
cudaError_t cudaDeviceSynchronize(void);

/* Destroys what this process holds on the current device: memory, streams, events. */
cudaError_t cudaDeviceReset(void);

/* How threads wait: changes nothing here. Bits that are none: cudaErrorInvalidValue. */
cudaError_t cudaSetDeviceFlags(unsigned int flags);

/* Writes the numbers of the lowest and the highest stream priority; a smaller number is a
 * higher priority, so greatestPriority <= leastPriority. Null pointers are skipped. */
cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority);

/* ---------------------------------------------------------------- peers
 * CUDA Runtime API, Peer Device Memory Access. */

/* Writes 1 if `device` can read and write the memory of `peerDevice`, else 0; a device is
 * no peer of itself. */
cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice);

/* Lets the current device use the memory of `peerDevice`; `flags` is 0. No such device:
 * cudaErrorInvalidDevice; the current one: cudaErrorPeerAccessUnsupported; already so:
 * cudaErrorPeerAccessAlreadyEnabled; flags not 0: cudaErrorInvalidValue. */
cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags);

/* Takes that back. Not enabled: cudaErrorPeerAccessNotEnabled. */
cudaError_t cudaDeviceDisablePeerAccess(int peerDevice);

/* Writes one attribute of the way from `srcDevice` to `dstDevice`: whether peer access is
 * supported, whether atomics are, and the rank of its performance among the ways that
 * there are (here all are alike: 0). Twice the same device, or none:
 * cudaErrorInvalidDevice; an attribute that does not exist: cudaErrorInvalidValue. */
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
                                      int srcDevice, int dstDevice);

/* ---------------------------------------------------------------- other processes
 * CUDA Runtime API, Device Management: memory of one process that others of the same
 * machine open, and use as if it were theirs. */

/* Writes a handle of the allocation that `devPtr` lies in, for other processes. It may be
 * asked for more than once, and needs not be given back. Memory that cudaMalloc did not
 * give, or that was opened from a handle: cudaErrorInvalidValue. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr);

/* Writes an address at which the current device can use the memory that another process
 * made `handle` of; `flags` is cudaIpcMemLazyEnablePeerAccess. A handle that is open here
 * already gives the same address, to be closed once more. Handles that this process made
 * itself: cudaErrorDeviceUninitialized. Memory that was freed, or whose process has ended
 * or is on another host, and bytes that are no handle: cudaErrorInvalidValue. */
cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
                                 unsigned int flags);

/* Gives up what cudaIpcOpenMemHandle gave. The process that it belongs to should free it
 * only after that. Any other address: cudaErrorInvalidValue. */
cudaError_t cudaIpcCloseMemHandle(void *devPtr);

/* ---------------------------------------------------------------- memory
 * CUDA Runtime API, Memory Management. No room: cudaErrorMemoryAllocation. */

/* Allocates `size` bytes on the current device, not cleared, aligned for any type. Size 0
 * gives a null pointer and cudaSuccess. */
cudaError_t cudaMalloc(void **devPtr, size_t size);

/* Allocates `height` rows of at least `width` bytes on the current device, and says how
 * many bytes after one another they begin. */
cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height);

/* Frees what cudaMalloc, cudaMallocManaged or cudaMallocAsync gave; null does nothing. It
 * "may perform implicit synchronization": here it waits for all work that is queued on
 * that device, but a program that relies on this waits itself. Any other address, or one
 * freed already: cudaErrorInvalidValue. */
cudaError_t cudaFree(void *devPtr);

/* Allocates `size` bytes of page-locked host memory, which host and devices may use. */
cudaError_t cudaMallocHost(void **ptr, size_t size);

/* The same; `flags` is a sum of cudaHostAlloc… constants. Other bits:
 * cudaErrorInvalidValue. */
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);

/* Frees what cudaMallocHost or cudaHostAlloc gave; null does nothing. Any other address:
 * cudaErrorInvalidValue. */
cudaError_t cudaFreeHost(void *ptr);

/* Makes `size` bytes of the program's own memory what cudaHostAlloc gives; `flags` is a
 * sum of cudaHostRegister… constants. Null, size 0 or other bits: cudaErrorInvalidValue;
 * bytes that are page-locked already: cudaErrorHostMemoryAlreadyRegistered. */
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);

/* Takes that back, of the address that was given there. Any other:
 * cudaErrorHostMemoryNotRegistered. */
cudaError_t cudaHostUnregister(void *ptr);

/* The address at which devices use page-locked memory: the same. `flags` is 0. Any other
 * memory or flags: cudaErrorInvalidValue. */
cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags);

/* Allocates `size` bytes that host and devices use at the same address. `flags` is
 * cudaMemAttachGlobal or cudaMemAttachHost. Other flags, or size 0:
 * cudaErrorInvalidValue. */
cudaError_t cudaMallocManaged(void **devPtr, size_t size,
                              unsigned int flags CUDA_CPU_DEFAULT(cudaMemAttachGlobal));

/* Writes the bytes of the current device that are free, and those it has. */
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

/* Copies `count` bytes and returns when they are there, with two exceptions: a copy
 * within device memory may still be on its way, and so may one from pageable host memory
 * to the device, of which `src` may be reused. It is queued on the default stream, so it
 * waits for the blocking streams. A kind that is none: cudaErrorInvalidMemcpyDirection.
 * CUDA Runtime API, "API synchronization behavior". */
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
                       enum cudaMemcpyKind kind);

/* Queues the copy on `stream` and may return before it has happened: leave `src` and
 * `dst` alone until the stream is synchronised. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            enum cudaMemcpyKind kind,
                            cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* Copies `height` rows of `width` bytes, which begin `spitch` bytes apart at `src` and
 * `dpitch` at `dst`; waits as cudaMemcpy does. A row that is longer than its pitch:
 * cudaErrorInvalidPitchValue (cudaErrorInvalidValue by CUDA 13 on an H200). */
cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind);

/* The same on `stream`, as cudaMemcpyAsync. */
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* Copies `count` bytes from one device's memory to another's, in order with all work of
 * both devices; returns without waiting for it. A device that does not exist:
 * cudaErrorInvalidDevice. */
cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
                           size_t count);

/* The same, in order with `stream` only. */
cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                size_t count, cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* Sets `count` bytes of device memory to the low byte of `value`, on the default stream;
 * returns without waiting for it. */
cudaError_t cudaMemset(void *devPtr, int value, size_t count);

/* The same on `stream`. */
cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* Sets `height` rows of `width` bytes, which begin `pitch` bytes apart. */
cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
                         size_t height);

/* The same on `stream`. */
cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width,
                              size_t height, cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* Says what kind of memory `ptr` points into, and whose. An address that no call above
 * gave is cudaMemoryTypeUnregistered, which is no error. CUDA Runtime API, Unified
 * Addressing. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *ptr);

/* Allocates `size` bytes on the device of `hStream`. The pointer is known at once, the
 * memory may be used by work that comes later on that stream. CUDA Runtime API, Stream
 * Ordered Memory Allocator. */
cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream);

/* Frees `devPtr` when `hStream` has come this far. An address that no allocation gave:
 * cudaErrorInvalidValue. */
cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream);

/* ---------------------------------------------------------------- streams
 * CUDA Runtime API, Stream Management. Operations of one stream happen in the order in
 * which they were queued; nothing orders two streams but events and the default stream
 * (0). A stream that was never created: cudaErrorInvalidResourceHandle. An operation that
 * used an address it must not use: cudaErrorIllegalAddress, from then on. */

/* Creates a stream on the current device that keeps step with the default stream. */
cudaError_t cudaStreamCreate(cudaStream_t *pStream);

/* The same with `flags` cudaStreamDefault or cudaStreamNonBlocking (does not keep step
 * with the default stream). Other flags: cudaErrorInvalidValue. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags);

/* The same with a priority, which is brought into the range that
 * cudaDeviceGetStreamPriorityRange gives. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
                                         int priority);

/* Writes the priority that the stream was created with, and its flags. */
cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags);

/* Gives the stream up; returns at once. What is still queued on it happens all the
 * same. */
cudaError_t cudaStreamDestroy(cudaStream_t stream);

/* Waits until everything queued on `stream` has happened. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

/* cudaSuccess if everything queued on `stream` has happened, else cudaErrorNotReady. */
cudaError_t cudaStreamQuery(cudaStream_t stream);

/* Makes what is queued on `stream` from now on wait for what `event` captured in its
 * latest cudaEventRecord; an event never recorded holds nothing up. The host does not
 * wait. `flags` is 0 or, for an event from outside in a stream that is being captured,
 * cudaEventWaitExternal: each launch of the graph waits for what the event holds then. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags CUDA_CPU_DEFAULT(0));

/* Queues a call of fn(userData) on `stream`. The function must not call CUDA, which
 * returns cudaErrorNotPermitted to it. CUDA Runtime API, Execution Control. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);

/* ---------------------------------------------------------------- events
 * CUDA Runtime API, Event Management. An event that was never created, or a null one:
 * cudaErrorInvalidResourceHandle (a null event may also give cudaErrorInvalidValue). */

/* Creates an event on the current device. */
cudaError_t cudaEventCreate(cudaEvent_t *event);

/* The same with `flags`, a sum of cudaEvent… constants. Other bits, or
 * cudaEventInterprocess without cudaEventDisableTiming: cudaErrorInvalidValue. */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);

/* Captures in `event` what is queued on `stream` now; replaces an earlier capture. */
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream CUDA_CPU_DEFAULT(0));

/* cudaSuccess if what `event` captured has happened (also if it captured nothing), else
 * cudaErrorNotReady. Recorded last in a stream that is being captured, here and in the
 * two calls below: cudaErrorCapturedEvent. This call and the next make the capture
 * invalid. From then on, and when the capture has ended: cudaErrorInvalidValue. */
cudaError_t cudaEventQuery(cudaEvent_t event);

/* Waits until what `event` captured has happened. */
cudaError_t cudaEventSynchronize(cudaEvent_t event);

/* Writes the milliseconds from `start` to `end`. One of them not recorded, or made with
 * cudaEventDisableTiming: cudaErrorInvalidResourceHandle; not yet reached:
 * cudaErrorNotReady. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* Gives the event up; may be called before it was reached. */
cudaError_t cudaEventDestroy(cudaEvent_t event);

/* ---------------------------------------------------------------- graphs
 * CUDA Runtime API, Stream Management and Graph Management. */

/* From now on, what is queued on `stream` is written into a graph instead of being done.
 * The default stream can't be captured: cudaErrorStreamCaptureUnsupported; a stream that
 * is being captured already: cudaErrorIllegalState. While it lasts, calls that allocate,
 * wait, or ask how far other work is return cudaErrorStreamCaptureUnsupported, and make
 * the capture invalid: in any thread (Global), in this one (ThreadLocal), or in none
 * (Relaxed). */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);

/* Ends the capture and writes the graph. A stream that is not being captured:
 * cudaErrorIllegalState; one that only joined the capture:
 * cudaErrorStreamCaptureUnmatched. Otherwise it writes null and returns
 * cudaErrorStreamCaptureInvalidated if a call broke a rule in between, and
 * cudaErrorStreamCaptureUnjoined if work of another stream was not waited for. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);

/* Writes whether `stream` is being captured. */
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *pCaptureStatus);

/* Makes of `graph` something that can be launched, as often as wanted; the graph may be
 * destroyed afterwards. `flags` is a sum of cudaGraphInstantiateFlag… or 0. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags CUDA_CPU_DEFAULT(0));

/* Queues the whole graph on `stream`, in order with what else is queued there, and after
 * earlier launches of the same graphExec on any stream. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);

/* On a GPU the first launch finds less to do then; here there is nothing to prepare. */
#define cudaGraphUpload(graphExec, stream) \
    ((void)(stream), (graphExec) ? cudaSuccess : cudaErrorInvalidValue)

/* Gives up what cudaGraphInstantiate made; a launch under way still finishes. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

/* Gives up the graph; what was instantiated from it stays. */
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* The same with the flags in their own name. */
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags CUDA_CPU_DEFAULT(0));

/* Older names, which CUDA 13 no longer has. */
static CUDA_CPU_INLINE cudaError_t cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}
#ifdef __cplusplus
} /* extern "C" */

/* The overloads that the CUDA Toolkit offers to C++. */
template <class T>
static CUDA_CPU_INLINE cudaError_t cudaMalloc(T **devPtr, size_t size) {
    return ::cudaMalloc((void **)(void *)devPtr, size);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t cudaMallocPitch(T **devPtr, size_t *pitch,
                                                   size_t width, size_t height) {
    return ::cudaMallocPitch((void **)(void *)devPtr, pitch, width, height);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t cudaMallocAsync(T **devPtr, size_t size,
                                                   cudaStream_t hStream) {
    return ::cudaMallocAsync((void **)(void *)devPtr, size, hStream);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t
cudaMallocManaged(T **devPtr, size_t size, unsigned int flags = cudaMemAttachGlobal) {
    return ::cudaMallocManaged((void **)(void *)devPtr, size, flags);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t cudaHostAlloc(T **pHost, size_t size,
                                                 unsigned int flags) {
    return ::cudaHostAlloc((void **)(void *)pHost, size, flags);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t cudaHostGetDevicePointer(T **pDevice, void *pHost,
                                                            unsigned int flags) {
    return ::cudaHostGetDevicePointer((void **)(void *)pDevice, pHost, flags);
}

static CUDA_CPU_INLINE cudaError_t cudaMallocHost(void **ptr, size_t size,
                                                  unsigned int flags) {
    return ::cudaHostAlloc(ptr, size, flags);
}

template <class T>
static CUDA_CPU_INLINE cudaError_t
cudaMallocHost(T **ptr, size_t size, unsigned int flags = cudaHostAllocDefault) {
    return ::cudaHostAlloc((void **)(void *)ptr, size, flags);
}

static CUDA_CPU_INLINE cudaError_t cudaEventCreate(cudaEvent_t *event,
                                                   unsigned int flags) {
    return ::cudaEventCreateWithFlags(event, flags);
}

/* The spelling of CUDA 11, which C++ programs still use; the error buffer stays
 * unwritten. */
static CUDA_CPU_INLINE cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec,
                                                        cudaGraph_t graph,
                                                        cudaGraphNode_t *, char *,
                                                        size_t) {
    return ::cudaGraphInstantiate(pGraphExec, graph, 0);
}

/* nvcc knows these without std::. Any other function that fits is taken before them. */
namespace cuda_cpu {
template <class A, class B>
static CUDA_CPU_INLINE constexpr typename std::common_type<A, B>::type max(A a, B b) {
    return a < b ? b : a;
}
template <class A, class B>
static CUDA_CPU_INLINE constexpr typename std::common_type<A, B>::type min(A a, B b) {
    return b < a ? b : a;
}
} // namespace cuda_cpu
using namespace cuda_cpu;

#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
/* ---------------------------------------------------------------- per thread
 * For a program that defines that before it includes this: stream 0 is then each thread's
 * own, cudaStreamPerThread, and so is that of the calls without a stream (CUDA
 * Programming Guide, "Default Stream"). NCCL and cuBLAS were not compiled so: their
 * stream 0 is the one of all threads. The names with _ptds and _ptsz are NVIDIA's. */
#define CUDA_CPU_OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)

/* Without a stream. */
static CUDA_CPU_INLINE cudaError_t cudaMemcpy_ptds(void *dst, const void *src,
                                                   size_t count,
                                                   enum cudaMemcpyKind kind) {
    cudaError_t result = cudaMemcpyAsync(dst, src, count, kind, cudaStreamPerThread);
    return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : result;
}

static CUDA_CPU_INLINE cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch,
                                                     const void *src, size_t spitch,
                                                     size_t width, size_t height,
                                                     enum cudaMemcpyKind kind) {
    cudaError_t result = cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind,
                                           cudaStreamPerThread);
    return result == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : result;
}

static CUDA_CPU_INLINE cudaError_t cudaMemset_ptds(void *devPtr, int value,
                                                   size_t count) {
    return cudaMemsetAsync(devPtr, value, count, cudaStreamPerThread);
}

static CUDA_CPU_INLINE cudaError_t cudaMemset2D_ptds(void *devPtr, size_t pitch,
                                                     int value, size_t width,
                                                     size_t height) {
    return cudaMemset2DAsync(devPtr, pitch, value, width, height, cudaStreamPerThread);
}

/* With one. */
#define CUDA_CPU_ON_STREAM(name, parameters, ...)               \
    static CUDA_CPU_INLINE cudaError_t name##_ptsz parameters { \
        return name(__VA_ARGS__);                               \
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
static CUDA_CPU_INLINE cudaError_t cudaMallocAsync_ptsz(T **devPtr, size_t size,
                                                        cudaStream_t stream) {
    return cudaMallocAsync((void **)(void *)devPtr, size, CUDA_CPU_OWN(stream));
}
#endif

#undef CUDA_CPU_ON_STREAM

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

#undef CUDA_CPU_INLINE
#undef CUDA_CPU_DEFAULT
#endif
