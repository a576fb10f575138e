/*
 * device.c has the errors, the devices, and what is set of them for each thread.
 */
#include "cuda/device.h"

#include "cuda/capture.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/sysinfo.h>

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
    ERROR(cudaErrorStreamCaptureUnmatched,
          "capture was not ended in the same stream as it began"),
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
    ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
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
          "operation would result in a merge of separate capture sequences"),
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ERROR(cudaErrorStreamCaptureIsolation,
          "dependency created on uncaptured work in another stream"),
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

static int ndevices = -1;
static int ranks_on_host;         // 0: not known
static int physical[MAX_DEVICES]; // the number a device has without CUDA_VISIBLE_DEVICES

/* CUDA Programming Guide, "CUDA Environment Variables": the list ends at the first entry
 * that names no device. */
static bool forked;

static void in_child(void) {
    forked = true;
}

/* As on an H200, where that holds after any call of CUDA. */
bool device_forked(void) {
    return forked;
}

static void find_devices(void) {
    if (ndevices >= 0)
        return;
    pthread_atfork(NULL, NULL, in_child);
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
    ndevices = 8;
    if (asked) {
        ndevices = atoi(asked);
    } else if (ranks_on_host > 0) {
        ndevices = ranks_on_host;
    } else {
        // Before MPI_Init, the launcher's environment says how many ranks it started
        // here.
        const char *names[] = {"LOCAL_WORLD_SIZE",      "OMPI_COMM_WORLD_LOCAL_SIZE",
                               "MPI_LOCALNRANKS",       "SLURM_STEP_TASKS_PER_NODE",
                               "SLURM_NTASKS_PER_NODE", "WORLD_SIZE"};
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

cudaError_t device_check(int device) {
    find_devices();
    if (ndevices == 0)
        return cudaErrorNoDevice;
    return device < 0 || device >= ndevices ? cudaErrorInvalidDevice : cudaSuccess;
}

int device_now(void) {
    return current_device;
}

void device_ranks_on_host(int ranks) {
    ranks_on_host = ranks;
}

const char *device_bus_id(int device, char out[32]) {
    snprintf(out, 32, "0000:%02X:00.0", physical[device] + 1);
    return out;
}

/* What CPU_MEMORY says: bytes, or with K, M or G; 0: nothing. */
static size_t memory_asked(void) {
    const char *asked = getenv("CPU_MEMORY");
    char *unit;
    double bytes = asked ? strtod(asked, &unit) : 0;
    if (bytes <= 0)
        return 0;
    static const char units[] = "KMG";
    const char *place = *unit ? strchr(units, *unit & ~0x20) : NULL;
    return (size_t)(bytes * (place ? (double)(1024ull << 10 * (place - units)) : 1));
}

/* The devices share less than half of the host's memory: its programs need the rest. */
static size_t memory_of_one(void) {
    if (memory_asked() > 0)
        return memory_asked();
    struct sysinfo info;
    sysinfo(&info);
    size_t all = (size_t)info.totalram * info.mem_unit;
    return all / 8 * 3 / (size_t)(ndevices > 0 ? ndevices : 1);
}

cudaError_t cudaGetDeviceCount(int *count) {
    if (forked && count) { // this alone goes on working
        *count = ndevices;
        return ndevices == 0 ? cudaErrorNoDevice : cudaSuccess;
    }
    CUDA_CALL;
    if (!count)
        return cuda_error(cudaErrorInvalidValue);
    find_devices();
    *count = ndevices;
    return cuda_error(ndevices == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t device_named(const char *call, int device) {
    static bool said;
    cudaError_t error = device_check(device);
    if (error != cudaErrorInvalidDevice || device < 0 || said)
        return error;
    int enough = 1;
    while (enough <= device && enough < INT_MAX / 2)
        enough *= 2;
    fprintf(stderr,
            "CPU build: %s(%d), and the last device is %d. CPU_DEVICES=%d gives more;"
            " otherwise a machine, or each that CPU_HOSTS pretends, has one for every"
            " rank.\n",
            call, device, ndevices - 1, enough);
    said = true;
    return error;
}

cudaError_t cudaSetDevice(int device) {
    CUDA_CALL;
    cudaError_t error = device_named(__func__, device);
    if (error == cudaSuccess)
        current_device = device;
    return cuda_error(error);
}

cudaError_t cudaGetDevice(int *device) {
    CUDA_CALL;
    if (!device)
        return cuda_error(cudaErrorInvalidValue);
    *device = current_device;
    return cuda_error(device_check(current_device));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    CUDA_CALL;
    if (!p)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = device_named(__func__, device);
    if (error != cudaSuccess)
        return cuda_error(error);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "CPU (no GPU)");
    memcpy(p->uuid.bytes, "nccl-cpu", 8);
    p->uuid.bytes[15] = (char)physical[device];
    p->pciBusID = physical[device] + 1;
    p->totalGlobalMem = memory_of_one();
    p->major = 8;
    p->multiProcessorCount = clock_on ? clock_units() : 1;
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
    CUDA_CALL;
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
    CUDA_CALL;
    if (!id || length < 13)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = device_check(device);
    if (error == cudaSuccess)
        snprintf(id, (size_t)length, "0000:%02X:00.0", physical[device] + 1);
    return cuda_error(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    CUDA_CALL;
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

/* --- How much memory there is ----------------------------------------------------- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    CUDA_CALL;
    if (!free_bytes || !total)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = device_check(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    size_t mine = memory_used(current_device);
    *total = memory_of_one();
    *free_bytes = mine < *total ? *total - mine : 0;
    return cudaSuccess;
}

cudaError_t device_allocate(void **out, size_t bytes, enum memory_kind kind) {
    *out = NULL;
    cudaError_t error = device_check(current_device);
    size_t mine = memory_used(current_device), all = memory_of_one();
    if (bytes == 0)
        return cudaSuccess;
    if (error != cudaSuccess)
        return error;
    static bool said;
    if (kind == MEMORY_DEVICE && (mine > all || bytes > all - mine)) {
        if (!said)
            fprintf(
                stderr,
                "CPU build: %zu bytes of memory are asked for, and device %d has %zu of "
                "%zu left. CPU_MEMORY=8G gives each device so much; without it all "
                "devices of a machine have three eighths of its memory together.\n",
                bytes, current_device, mine < all ? all - mine : 0, all);
        said = true;
        return cudaErrorMemoryAllocation;
    }
    struct memory *memory = memory_create(bytes, kind, current_device);
    if (!memory)
        return cudaErrorMemoryAllocation;
    *out = memory->user;
    return cudaSuccess;
}

void device_wait(int device) {
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->device == device)
            wait_for(stream_end(streams[s]));
    if (clock_on)
        clock_host_until(streams_gone(device));
}

cudaError_t cudaDeviceSynchronize(void) {
    CUDA_CALL;
    cudaError_t error = device_check(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->capture) {
            capture_spoil(streams[s]);
            return cuda_error(cudaErrorStreamCaptureUnsupported);
        }
    device_wait(current_device);
    return cuda_error(device_broken(current_device));
}

cudaError_t cudaDeviceReset(void) {
    CUDA_CALL;
    cudaError_t error = device_check(current_device);
    if (error != cudaSuccess)
        return cuda_error(error);
    device_wait(current_device);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->device == current_device && !streams[s]->legacy &&
            !streams[s]->internal && !streams[s]->destroyed)
            stream_retire(streams[s]);
    memory_reset_device(current_device);
    device_mend(current_device);
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    CUDA_CALL;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cuda_error(device_check(current_device));
}

/* --- Peers ------------------------------------------------------------------------ */

static unsigned char peers[MAX_DEVICES][MAX_DEVICES];

bool device_reaches(int device, int peer) {
    return peers[device][peer] || peers[peer][device];
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    CUDA_CALL;
    if (!can)
        return cuda_error(cudaErrorInvalidValue);
    if (device_check(device) != cudaSuccess || device_check(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    CUDA_CALL;
    if (flags != 0)
        return cuda_error(cudaErrorInvalidValue);
    if (device_check(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    if (peer == current_device) // the manual has InvalidDevice, an H200 answers this
        return cuda_error(cudaErrorPeerAccessUnsupported);
    if (peers[current_device][peer])
        return cuda_error(cudaErrorPeerAccessAlreadyEnabled);
    peers[current_device][peer] = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    CUDA_CALL;
    if (device_check(peer) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    if (!peers[current_device][peer])
        return cuda_error(cudaErrorPeerAccessNotEnabled);
    peers[current_device][peer] = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute,
                                      int from, int to) {
    CUDA_CALL;
    if (!value)
        return cuda_error(cudaErrorInvalidValue);
    if (device_check(from) != cudaSuccess || device_check(to) != cudaSuccess ||
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
