/*
 * cuda.c: devices, copies, streams, events and graphs of the CUDA runtime.
 */
#include "internal.h"

#include <ctype.h>

static __thread cudaError_t last_error = cudaSuccess;
static __thread int current_device;

cudaError_t cuda_error(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

/* --- Errors and versions ---------------------------------------------------------- */

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) \
    { name, #name, text }
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two"
                                          " devices"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ERROR(cudaErrorHostMemoryAlreadyRegistered,
          "part or all of the requested memory range is already mapped"),
    ERROR(cudaErrorHostMemoryNotRegistered,
          "pointer does not correspond to a registered memory region"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotPermitted, "operation not permitted"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorStreamCaptureUnsupported,
          "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureInvalidated,
          "operation failed due to a previous error during capture"),
    ERROR(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream"),
    ERROR(cudaErrorIllegalState,
          "the operation cannot be performed in the present state"),
    ERROR(cudaErrorTimeout, "wait operation timed out"),
    ERROR(cudaErrorUnknown, "unknown error"),
    ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    ERROR(cudaErrorCallRequiresNewerDriver,
          "API call is not supported in the installed CUDA driver"),
    ERROR(cudaErrorDevicesUnavailable,
          "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
    ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    ERROR(cudaErrorNoKernelImageForDevice,
          "no kernel image is available for execution on the device"),
    ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ERROR(cudaErrorDeviceAlreadyInUse,
          "exclusive-thread device already in use by a different thread"),
    ERROR(cudaErrorNvlinkUncorrectable,
          "uncorrectable NVLink error detected during the execution"),
    ERROR(cudaErrorSharedObjectInitFailed, "shared object initialization failed"),
    ERROR(cudaErrorOperatingSystem,
          "OS call failed or operation not supported on this OS"),
    ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorSetOnActiveProcess,
          "cannot set while device is active in this process"),
    ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorTooManyPeers, "peer mapping resources exhausted"),
    ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorInvalidAddressSpace,
          "operation not supported on global/shared address space"),
    ERROR(cudaErrorInvalidPc, "invalid program counter"),
    ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    ERROR(cudaErrorSystemDriverMismatch,
          "system has unsupported display driver / cuda driver combination"),
    ERROR(cudaErrorCompatNotSupportedOnDevice,
          "forward compatibility was attempted on non supported HW"),
    ERROR(cudaErrorStreamCaptureMerge,
          "dependency created on uncaptured work in another stream"),
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ERROR(cudaErrorStreamCaptureIsolation,
          "dependency not permitted on the legacy stream during capture"),
    ERROR(cudaErrorStreamCaptureImplicit,
          "operation would make the legacy stream depend on a capturing blocking stream"),
    ERROR(cudaErrorCapturedEvent,
          "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(cudaErrorStreamCaptureWrongThread,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ERROR(cudaErrorGraphExecUpdateFailure, "the graph update was not performed"),
    ERROR(cudaErrorExternalDevice,
          "an async error has occurred in external entity outside of CUDA"),
    ERROR(cudaErrorInvalidClusterSize, "Invalid cluster size"),
    ERROR(cudaErrorApiFailureBase, "API call failed"),
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int *version) {
    if (!version)
        return cuda_error(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    if (!version)
        return cuda_error(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* --- Devices ---------------------------------------------------------------------- */

enum { MAX_DEVICES = 256 };
static int ndevices = -1;
static int physical[MAX_DEVICES]; // the number a device has without CUDA_VISIBLE_DEVICES

/* CUDA Programming Guide, "CUDA Environment Variables": the list ends at the first entry
 * that names no device. */
static void find_devices(void) {
    if (ndevices >= 0)
        return;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *asked = getenv("CPU_DEVICES");
    if (visible) {
        ndevices = 0;
        while (*visible && ndevices < MAX_DEVICES) {
            char *end;
            long number;
            if (strncmp(visible, "GPU-", 4) == 0 || strncmp(visible, "MIG-", 4) == 0) {
                number = MAX_DEVICES + ndevices;
                end = (char *)(uintptr_t)visible + strcspn(visible, ",");
            } else {
                number = strtol(visible, &end, 10);
                if (end == visible || number < 0)
                    break;
            }
            physical[ndevices++] = (int)number;
            if (*end != ',')
                break;
            visible = end + 1;
        }
        return;
    }
    ndevices = 4;
    if (asked) {
        ndevices = atoi(asked);
    } else if (ranks_on_host > 0) {
        ndevices = ranks_on_host;
    } else {
        // Before MPI_Init, the launcher's environment says how many ranks it started
        // here.
        const char *names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                               "SLURM_NTASKS_PER_NODE"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (getenv(names[i]) && atoi(getenv(names[i])) > 0) {
                ndevices = atoi(getenv(names[i]));
                break;
            }
    }
    ndevices = ndevices < 0 ? 0 : ndevices > MAX_DEVICES ? MAX_DEVICES : ndevices;
    for (int i = 0; i < ndevices; i++)
        physical[i] = i;
}

static cudaError_t check_device(int device) {
    find_devices();
    if (ndevices == 0)
        return cudaErrorNoDevice;
    return device < 0 || device >= ndevices ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    PUBLIC_CALL;
    if (!count)
        return cuda_error(cudaErrorInvalidValue);
    find_devices();
    *count = ndevices;
    return cuda_error(ndevices == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
    PUBLIC_CALL;
    cudaError_t error = check_device(device);
    if (error == cudaSuccess)
        current_device = device;
    return cuda_error(error);
}

cudaError_t cudaGetDevice(int *device) {
    PUBLIC_CALL;
    if (!device)
        return cuda_error(cudaErrorInvalidValue);
    *device = current_device;
    return cuda_error(check_device(current_device));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    PUBLIC_CALL;
    if (!p)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = check_device(device);
    if (error != cudaSuccess)
        return cuda_error(error);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "CPU (no GPU)");
    memcpy(p->uuid.bytes, "nccl-cpu", 8);
    p->uuid.bytes[15] = (char)physical[device];
    p->pciBusID = physical[device] + 1;
    int before = current_device;
    size_t free_bytes;
    current_device = device;
    cudaMemGetInfo(&free_bytes, &p->totalGlobalMem);
    current_device = before;
    p->major = 8;
    p->multiProcessorCount = 1;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 1024;
    p->asyncEngineCount = p->unifiedAddressing = p->canMapHostMemory = 1;
    p->managedMemory = p->concurrentKernels = p->streamPrioritiesSupported = 1;
    p->memoryPoolsSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device) {
    PUBLIC_CALL;
    struct cudaDeviceProp p;
    if (!value)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error != cudaSuccess)
        return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p.maxThreadsPerMultiProcessor;
        break;
    case cudaDevAttrPciBusId: *value = p.pciBusID; break;
    case cudaDevAttrPciDeviceId: *value = p.pciDeviceID; break;
    case cudaDevAttrPciDomainId: *value = p.pciDomainID; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrAsyncEngineCount: *value = p.asyncEngineCount; break;
    case cudaDevAttrComputeMode: *value = cudaComputeModeDefault; break;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
    case cudaDevAttrTotalConstantMemory:
    case cudaDevAttrClockRate:
    case cudaDevAttrIntegrated:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrGlobalMemoryBusWidth:
    case cudaDevAttrL2CacheSize:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrGPUDirectRDMASupported: *value = 0; break;
    default: return cuda_error(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    PUBLIC_CALL;
    if (!id || length < 13)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = check_device(device);
    if (error == cudaSuccess)
        snprintf(id, (size_t)length, "0000:%02X:00.0", physical[device] + 1);
    return cuda_error(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    PUBLIC_CALL;
    unsigned domain = 0, bus, slot, function = 0;
    if (!device || !id)
        return cuda_error(cudaErrorInvalidValue);
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3 &&
        sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
        return cuda_error(cudaErrorInvalidValue);
    find_devices();
    for (int i = 0; i < ndevices; i++)
        if ((unsigned)physical[i] + 1 == bus) {
            *device = i;
            return cudaSuccess;
        }
    return cuda_error(cudaErrorInvalidDevice);
}

static bool capturing_anywhere(void) {
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->capturing)
            return true;
    return false;
}

cudaError_t cudaDeviceSynchronize(void) {
    PUBLIC_CALL;
    cudaError_t error = check_device(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    if (capturing_anywhere())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    check_group_open("cudaDeviceSynchronize", CALLER, NULL);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->device == current_device)
            wait_for(streams[s], streams[s]->queued, "cudaDeviceSynchronize", CALLER);
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
    PUBLIC_CALL;
    cudaError_t error = check_device(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->device == current_device) {
            wait_for(streams[s], streams[s]->queued, "cudaDeviceReset", CALLER);
            if (streams[s] && !streams[s]->legacy)
                stream_retire(streams[s]);
        }
    memory_reset_device(current_device);
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    PUBLIC_CALL;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cuda_error(check_device(current_device));
}

/* --- Peers ------------------------------------------------------------------------ */

static unsigned char peers[MAX_DEVICES][MAX_DEVICES];

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    PUBLIC_CALL;
    if (!can)
        return cuda_error(cudaErrorInvalidValue);
    if (check_device(device) != cudaSuccess || check_device(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    PUBLIC_CALL;
    if (flags != 0)
        return cuda_error(cudaErrorInvalidValue);
    if (check_device(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    if (peer == current_device) // the manual has InvalidDevice, an H200 answers this
        return cuda_error(cudaErrorPeerAccessUnsupported);
    if (peers[current_device][peer])
        return cuda_error(cudaErrorPeerAccessAlreadyEnabled);
    peers[current_device][peer] = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    PUBLIC_CALL;
    if (check_device(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    if (!peers[current_device][peer])
        return cuda_error(cudaErrorPeerAccessNotEnabled);
    peers[current_device][peer] = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute,
                                      int from, int to) {
    PUBLIC_CALL;
    if (!value)
        return cuda_error(cudaErrorInvalidValue);
    if (check_device(from) != cudaSuccess || check_device(to) != cudaSuccess ||
        from == to)
        return cuda_error(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevP2PAttrPerformanceRank: *value = 0; break;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
    case cudaDevP2PAttrCudaArrayAccessSupported: *value = 1; break;
    default: return cuda_error(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

/* --- Copies ----------------------------------------------------------------------- */

static bool on_device(struct memory *memory) {
    return memory && memory->kind != MEMORY_PINNED;
}

/* Whether `kind` agrees with where the addresses lie. */
static cudaError_t check_direction(struct memory *to, struct memory *from,
                                   enum cudaMemcpyKind kind) {
    bool to_host = !to || to->kind != MEMORY_DEVICE;
    bool from_host = !from || from->kind != MEMORY_DEVICE;
    switch (kind) {
    case cudaMemcpyHostToHost:
        return to_host && from_host ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyHostToDevice:
        return to && from_host ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToHost:
        return to_host && from ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToDevice:
        return to && from ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDefault: return cudaSuccess;
    }
    return cudaErrorInvalidMemcpyDirection;
}

/* Whether the default stream would have to wait for a stream that is being captured. */
static bool capture_in_the_way(const struct stream *stream) {
    for (int s = 0; s < nstreams; s++)
        if (stream->legacy && streams[s] && streams[s]->capturing &&
            streams[s]->blocking && streams[s]->device == stream->device) {
            streams[s]->capturing->invalid = true;
            return true;
        }
    return false;
}

static cudaError_t copy(void *to, const void *from, size_t bytes,
                        enum cudaMemcpyKind kind, struct stream *stream, bool wait,
                        const char *name, void *site) {
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (capture_in_the_way(stream))
        return cuda_error(cudaErrorStreamCaptureImplicit);
    struct memory *target = memory_find(to), *source = memory_find(from);
    cudaError_t error = bytes == 0 ? cudaSuccess : check_direction(target, source, kind);
    if (error == cudaSuccess && bytes > 0 && (!to || !from))
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return cuda_error(error);
    if (check_range(name, site, to, bytes) || check_range(name, site, from, bytes))
        return cuda_error(cudaErrorInvalidValue);
    struct op *op = op_create(OP_COPY, name, site);
    op->destination = to;
    op->source = from;
    op->bytes = bytes;
    op_range(op, to, bytes, true, NULL);
    op_range(op, from, bytes, false, NULL);
    // Pageable host memory is read before the call returns, and written before it
    // returns. CUDA Runtime API, "API synchronization behavior".
    if (!source && bytes && (on_device(target) || stream->capturing)) {
        op->staged = must_alloc(bytes);
        memcpy(op->staged, from, bytes);
    }
    bool capturing = stream->capturing;
    // A copy that waits also waits for the default streams of the other devices it
    // touches.
    for (int i = 0; wait && i < 2; i++) {
        struct memory *memory = i == 0 ? target : source;
        if (memory && memory->device != stream->device) {
            struct stream *other = legacy_stream(memory->device);
            wait_for(other, other->queued, name, site);
        }
    }
    // From there to the device, the copy begins when the stream is done with all before
    // it, and the data need not have arrived when the call returns.
    bool early = !source && target && target->kind == MEMORY_DEVICE;
    if (wait && early)
        wait_for(stream, stream->queued, name, site);
    op_enqueue(op, stream);
    if (!capturing && !early &&
        (!target || (wait && (!on_device(source) || !on_device(target)))))
        wait_for(stream, stream->queued, name, site);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind) {
    PUBLIC_CALL;
    return copy(to, from, bytes, kind, legacy_stream(current_device), true, "cudaMemcpy",
                CALLER);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    PUBLIC_CALL;
    return copy(to, from, bytes, kind, stream_of(stream, current_device), false,
                "cudaMemcpyAsync", CALLER);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
    PUBLIC_CALL;
    if (check_device(to_device) != cudaSuccess ||
        check_device(from_device) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    // In order with all work, past and to come, of the three devices.
    for (int s = 0; s < nstreams; s++)
        if (streams[s] &&
            (streams[s]->device == to_device || streams[s]->device == from_device ||
             streams[s]->device == current_device))
            wait_for(streams[s], streams[s]->queued, "cudaMemcpyPeer", CALLER);
    struct stream *stream = legacy_stream(current_device);
    cudaError_t error =
        copy(to, from, bytes, cudaMemcpyDefault, stream, true, "cudaMemcpyPeer", CALLER);
    wait_for(stream, stream->queued, "cudaMemcpyPeer", CALLER);
    return error;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream) {
    PUBLIC_CALL;
    if (check_device(to_device) != cudaSuccess ||
        check_device(from_device) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    return copy(to, from, bytes, cudaMemcpyDefault, stream_of(stream, current_device),
                false, "cudaMemcpyPeerAsync", CALLER);
}

static cudaError_t set(void *to, int value, size_t bytes, struct stream *stream,
                       const char *name, void *site) {
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (bytes == 0)
        return cudaSuccess;
    if (capture_in_the_way(stream))
        return cuda_error(cudaErrorStreamCaptureImplicit);
    struct memory *memory = memory_find(to);
    if (!memory)
        return cuda_error(cudaErrorInvalidValue);
    if (check_range(name, site, to, bytes))
        return cuda_error(cudaErrorInvalidValue);
    struct op *op = op_create(OP_SET, name, site);
    op->destination = to;
    op->value = value;
    op->bytes = bytes;
    op_range(op, to, bytes, true, NULL);
    op_enqueue(op, stream);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    PUBLIC_CALL;
    struct stream *stream = legacy_stream(current_device);
    cudaError_t error = set(to, value, bytes, stream, "cudaMemset", CALLER);
    // Asynchronous to the host only for device memory.
    if (error == cudaSuccess && bytes && memory_find(to)->kind == MEMORY_PINNED)
        wait_for(stream, stream->queued, "cudaMemset", CALLER);
    return error;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    PUBLIC_CALL;
    return set(to, value, bytes, stream_of(stream, current_device), "cudaMemsetAsync",
               CALLER);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!pointer || !stream)
        return cuda_error(pointer ? cudaErrorInvalidResourceHandle
                                  : cudaErrorInvalidValue);
    return cuda_error(memory_create(pointer, bytes, MEMORY_DEVICE, CALLER));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!pointer)
        return cudaSuccess;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || memory->opened ||
        memory->kind == MEMORY_PINNED)
        return cuda_error(cudaErrorInvalidValue);
    struct op *op = op_create(OP_FREE, "cudaFreeAsync", CALLER);
    op->destination = pointer;
    op_range(op, pointer, memory->bytes, true, NULL);
    op_enqueue(op, stream);
    return cudaSuccess;
}

/* --- Streams ---------------------------------------------------------------------- */

static cudaError_t create_stream(cudaStream_t *out, unsigned int flags, void *site) {
    cudaError_t error = check_device(current_device);
    if (!out || flags & ~(unsigned)cudaStreamNonBlocking)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *out =
            (cudaStream_t)stream_create(current_device, flags == cudaStreamDefault, site);
    return cuda_error(error);
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    PUBLIC_CALL;
    return create_stream(out, cudaStreamDefault, CALLER);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
    PUBLIC_CALL;
    return create_stream(out, flags, CALLER);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                         int priority) {
    PUBLIC_CALL;
    (void)priority; // one processor serves all
    return create_stream(out, flags, CALLER);
}

/* A stream that the program made; its own handle, not the default ones. */
static struct stream *own_stream(cudaStream_t handle) {
    bool special = !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
    return special ? NULL : stream_of(handle, current_device);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = own_stream(handle);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    stream_retire(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (stream->capturing) {
        stream->capturing->invalid = true;
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    }
    check_group_open("cudaStreamSynchronize", CALLER, stream);
    wait_for(stream, stream->queued, "cudaStreamSynchronize", CALLER);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (stream->capturing) {
        stream->capturing->invalid = true;
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    }
    check_group_open("cudaStreamQuery", CALLER, stream);
    if (!poll_for(stream, stream->queued, "cudaStreamQuery", CALLER))
        return cudaErrorNotReady;
    mark_seen(stream, stream->queued);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                               void *argument) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!function)
        return cuda_error(cudaErrorInvalidValue);
    struct op *op = op_create(OP_HOST_FUNCTION, "cudaLaunchHostFunc", CALLER);
    op->function = function;
    op->argument = argument;
    op_enqueue(op, stream);
    return cudaSuccess;
}

/* --- Events ----------------------------------------------------------------------- */

struct CUevent_st {
    struct CUevent_st *next;
    bool recorded, timing;
    int device;
    struct graph *graph; // the capture that recorded it, instead of a stream
    int slot;            // of the stream it was recorded on
    uint64_t seq;
    uint64_t *clock;
    int nclock;
    double *time; // outlives the event if it is destroyed before it happens
    void *site;
};

static struct CUevent_st *events;

static struct CUevent_st *event_of(cudaEvent_t handle) {
    for (struct CUevent_st *event = events; event; event = event->next)
        if (event == handle)
            return event;
    return NULL;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
    PUBLIC_CALL;
    if (!out || flags & ~7u ||
        (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming)))
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = check_device(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    struct CUevent_st *event = must_alloc(sizeof *event);
    event->timing = !(flags & cudaEventDisableTiming);
    event->device = current_device;
    event->site = CALLER;
    event->next = events;
    events = event;
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    PUBLIC_CALL;
    cudaError_t error = cudaEventCreateWithFlags(out, cudaEventDefault);
    if (error == cudaSuccess)
        (*out)->site = CALLER;
    return error;
}

size_t events_left(void **site) {
    size_t n = 0;
    for (struct CUevent_st *event = events; event; event = event->next, n++)
        if (n == 0)
            *site = event->site;
    return n;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    PUBLIC_CALL;
    for (struct CUevent_st **at = &events; *at; at = &(*at)->next)
        if (*at == handle) {
            *at = handle->next;
            free(handle->clock);
            free(handle); // time stays: an operation still queued may write it
            return cudaSuccess;
        }
    return cuda_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    PUBLIC_CALL;
    struct CUevent_st *event = event_of(handle);
    struct stream *stream = stream_of(stream_handle, current_device);
    if (!event || !stream || event->device != stream->device)
        return cuda_error(cudaErrorInvalidResourceHandle);
    struct op *op = op_create(OP_EVENT, "cudaEventRecord", CALLER);
    event->graph = stream->capturing;
    if (stream->capturing) {
        // Inside a graph the order of the queue is the order of the events.
        op_enqueue(op, stream);
        return cudaSuccess;
    }
    event->time = must_alloc(sizeof *event->time);
    op->time = event->time;
    op_enqueue(op, stream);
    event->recorded = true;
    event->slot = stream->slot;
    event->seq = stream->queued;
    event->nclock = nstreams;
    free(event->clock);
    event->clock = must_alloc((size_t)nstreams * sizeof *event->clock);
    memcpy(event->clock, clock_of(stream), (size_t)nstreams * sizeof *event->clock);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                unsigned int flags) {
    PUBLIC_CALL;
    struct CUevent_st *event = event_of(handle);
    struct stream *stream = stream_of(stream_handle, current_device);
    if (!event || !stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (flags & ~(unsigned)cudaEventWaitExternal)
        return cuda_error(cudaErrorInvalidValue);
    if (event->graph) {
        // The stream joins the capture, as long as that goes on.
        for (int s = 0; s < nstreams; s++)
            if (streams[s] && streams[s]->capturing == event->graph) {
                stream->capturing = event->graph;
                break;
            }
        return cudaSuccess;
    }
    if (!event->recorded)
        return cudaSuccess;
    struct op *op = op_create(OP_WAIT, "cudaStreamWaitEvent", CALLER);
    op_depend(op, event->slot, event->seq);
    uint64_t *clock = clock_of(stream);
    for (int s = 0; s < event->nclock; s++)
        if (event->clock[s] > clock[s])
            clock[s] = event->clock[s];
    op_enqueue(op, stream);
    return cudaSuccess;
}

/* Waiting for an event is waiting for its stream up to there; a stream that is gone has
 * done all it had. */
static bool event_done(struct CUevent_st *event) {
    return !event->recorded || done[event->slot] >= event->seq;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    PUBLIC_CALL;
    struct CUevent_st *event = event_of(handle);
    if (!event)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (event->recorded && streams[event->slot])
        check_group_open("cudaEventQuery", CALLER, streams[event->slot]);
    if (!event_done(event) &&
        !poll_for(streams[event->slot], event->seq, "cudaEventQuery", CALLER))
        return cudaErrorNotReady;
    if (event->recorded)
        mark_clock_seen(event->clock, event->nclock);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    PUBLIC_CALL;
    struct CUevent_st *event = event_of(handle);
    if (!event)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (event->recorded && streams[event->slot])
        check_group_open("cudaEventSynchronize", CALLER, streams[event->slot]);
    if (!event_done(event))
        wait_until(streams[event->slot], event->seq, "cudaEventSynchronize", CALLER);
    if (event->recorded)
        mark_clock_seen(event->clock, event->nclock);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    PUBLIC_CALL;
    struct CUevent_st *first = event_of(start), *second = event_of(end);
    if (!ms)
        return cuda_error(cudaErrorInvalidValue);
    if (!first || !second || !first->recorded || !second->recorded || !first->timing ||
        !second->timing || first->device != second->device)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!event_done(first) || !event_done(second))
        return cudaErrorNotReady;
    *ms = (float)((*second->time - *first->time) * 1e3);
    return cudaSuccess;
}

/* --- Graphs ----------------------------------------------------------------------- */

struct CUgraph_st {
    struct graph list;
};

struct CUgraphExec_st {
    struct graph list;
};

static void free_list(struct graph *list) {
    while (list->first) {
        struct op *op = list->first;
        list->first = op->next;
        op_free(op);
    }
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    PUBLIC_CALL;
    (void)mode;
    struct stream *stream = own_stream(handle);
    if (!handle || handle == cudaStreamLegacy)
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (stream->capturing)
        return cuda_error(cudaErrorIllegalState);
    struct CUgraph_st *graph = must_alloc(sizeof *graph);
    graph->list.origin = stream;
    stream->capturing = &graph->list;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
    PUBLIC_CALL;
    struct stream *stream = own_stream(handle);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!out)
        return cuda_error(cudaErrorInvalidValue);
    if (!stream->capturing || stream->capturing->origin != stream)
        return cuda_error(cudaErrorIllegalState);
    *out = (cudaGraph_t)stream->capturing;
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s] != stream &&
            streams[s]->capturing == stream->capturing)
            streams[s]->capturing = NULL;
    stream->capturing = NULL;
    if ((*out)->list.invalid) {
        free_list(&(*out)->list);
        free(*out);
        *out = NULL;
        return cuda_error(cudaErrorStreamCaptureInvalidated);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  enum cudaStreamCaptureStatus *status) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!status)
        return cuda_error(cudaErrorInvalidValue);
    *status = !stream->capturing           ? cudaStreamCaptureStatusNone
              : stream->capturing->invalid ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

static struct op *copy_op(const struct op *from) {
    struct op *op = op_create(from->kind, from->name, from->site);
    op->destination = from->destination;
    op->source = from->source;
    op->bytes = from->bytes;
    op->value = from->value;
    op->function = from->function;
    op->argument = from->argument;
    if (from->staged) {
        op->staged = must_alloc(from->bytes);
        memcpy(op->staged, from->staged, from->bytes);
    }
    struct call **end = &op->calls;
    for (const struct call *call = from->calls; call; call = call->next) {
        *end = call_copy(call);
        for (int r = 0; r < from->nranges; r++)
            if (from->ranges[r].call == call)
                op_range(op, from->ranges[r].start, from->ranges[r].bytes,
                         from->ranges[r].write, *end);
        end = &(*end)->next;
    }
    for (int r = 0; r < from->nranges; r++)
        if (!from->ranges[r].call)
            op_range(op, from->ranges[r].start, from->ranges[r].bytes,
                     from->ranges[r].write, NULL);
    return op;
}

static void copy_list(struct graph *to, const struct graph *from) {
    struct op **end = &to->first;
    for (struct op *op = from->first; op; op = op->next) {
        to->last = *end = copy_op(op);
        end = &(*end)->next;
    }
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
    PUBLIC_CALL;
    (void)flags;
    if (!out || !graph)
        return cuda_error(cudaErrorInvalidValue);
    *out = must_alloc(sizeof **out);
    copy_list(&(*out)->list, &graph->list);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
    PUBLIC_CALL;
    struct stream *stream = stream_of(handle, current_device);
    if (!exec)
        return cuda_error(cudaErrorInvalidValue);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    struct graph list = {0};
    copy_list(&list, &exec->list);
    while (list.first) {
        struct op *op = list.first;
        list.first = op->next;
        op->next = NULL;
        // A call takes its number when it is launched, not when it is captured.
        for (struct call *call = op->calls; call && !stream->capturing; call = call->next)
            call_number(call);
        op_enqueue(op, stream);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    PUBLIC_CALL;
    if (!exec)
        return cuda_error(cudaErrorInvalidValue);
    free_list(&exec->list);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    PUBLIC_CALL;
    if (!graph)
        return cuda_error(cudaErrorInvalidValue);
    free_list(&graph->list);
    free(graph);
    return cudaSuccess;
}
