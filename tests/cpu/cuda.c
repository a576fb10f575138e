/*
 * The CUDA runtime by itself, in one process and without MPI: devices, memory, copies,
 * peers, events, graphs, and the errors that the manual documents for wrong arguments.
 * Run with at least two devices: CPU_DEVICES=3.
 */
#define TAP_ALONE
#include "ints.h"
#include <stdint.h>

static int devices;

static void device_calls(void) {
    int current = -1, count = -1;
    char bus[8][32];
    CUDA(cudaGetDeviceCount(&count));
    expect(count == devices, "%d devices", count);
    CUDA(cudaGetDevice(&current));
    expect(current == 0, "device %d at the start", current);
    for (int d = devices - 1; d >= 0; d--) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaGetDevice(&current));
        expect(current == d, "device %d, set %d", current, d);
        CUDA(cudaDeviceSynchronize());
    }
    point("count, set, get, synchronize");

    for (int d = 0; d < devices && d < 8; d++) {
        struct cudaDeviceProp prop;
        int value = -1, found = -1;
        memset(&prop, 0x7f, sizeof prop);
        CUDA(cudaGetDeviceProperties(&prop, d));
        expect(memchr(prop.name, 0, sizeof prop.name) && prop.name[0], "no name");
        expect(prop.totalGlobalMem > 0, "no memory");
        size_t free, total;
        CUDA(cudaSetDevice(d));
        CUDA(cudaMemGetInfo(&free, &total));
        expect(total == prop.totalGlobalMem && free <= total,
               "%zu of %zu free, %zu in all", free, total, prop.totalGlobalMem);
        CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, d));
        expect(value == prop.major && value > 0, "compute capability %d, %d", value,
               prop.major);
        CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, d));
        expect(value == prop.pciBusID, "PCI bus %d, %d", value, prop.pciBusID);
        CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, d));
        expect(value == prop.multiProcessorCount && value > 0, "%d, %d multiprocessors",
               value, prop.multiProcessorCount);
        CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrUnifiedAddressing, d));
        expect(value == 1, "unified addressing is %d", value);

        unsigned domain, busid, device, function;
        CUDA(cudaDeviceGetPCIBusId(bus[d], sizeof bus[d], d));
        int fields = sscanf(bus[d], "%x:%x:%x.%x", &domain, &busid, &device, &function);
        expect(fields == 4, "PCI bus id \"%s\"", bus[d]);
        expect((int)domain == prop.pciDomainID && (int)busid == prop.pciBusID &&
                   (int)device == prop.pciDeviceID,
               "PCI bus id \"%s\", properties say %x:%x:%x", bus[d], prop.pciDomainID,
               prop.pciBusID, prop.pciDeviceID);
        CUDA(cudaDeviceGetByPCIBusId(&found, bus[d]));
        expect(found == d, "\"%s\" is device %d", bus[d], found);
        for (int e = 0; e < d; e++) {
            expect(strcmp(bus[d], bus[e]) != 0, "devices %d and %d are \"%s\"", d, e,
                   bus[d]);
        }
    }
    CUDA(cudaSetDevice(0));
    point("properties, attributes and PCI bus ids agree");

    int value;
    char small[4];
    struct cudaDeviceProp prop;
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(devices));
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
    CUDA(cudaGetDevice(&current));
    expect(current == 0, "a refused cudaSetDevice changed the device to %d", current);
    CUDA_IS(cudaErrorInvalidValue, cudaGetDevice(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
    CUDA_IS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop, devices));
    CUDA_IS(cudaErrorInvalidValue, cudaGetDeviceProperties(NULL, 0));
    CUDA_IS(cudaErrorInvalidDevice,
            cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    CUDA_IS(cudaErrorInvalidValue,
            cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(NULL, 32, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(small, 0, 0));
    CUDA_IS(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(bus[0], 32, devices));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&value, NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(NULL, "0000:01:00.0"));
    cudaGetLastError();
    point("wrong arguments to the device calls");

    int least = -1, greatest = 1;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    expect(greatest <= least, "priorities %d … %d", least, greatest);
    CUDA(cudaDeviceGetStreamPriorityRange(NULL, NULL));
    for (int priority = greatest - 1; priority <= least + 1; priority++) {
        cudaStream_t stream = NULL;
        CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaStreamDestroy(stream));
    }
    point("stream priorities, also outside the range");
}

static void *device_of_a_thread(void *unused) {
    (void)unused;
    int current = -1;
    CUDA(cudaGetDevice(&current));
    expect(current == 0, "a new thread starts with device %d", current);
    CUDA(cudaPeekAtLastError()); /* the other thread's errors are its own */
    CUDA(cudaSetDevice(0));
    return NULL;
}

static void threads(void) {
    pthread_t thread;
    int current = -1;
    CUDA(cudaSetDevice(devices - 1));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(NULL, &current, 4, cudaMemcpyDefault));
    pthread_create(&thread, NULL, device_of_a_thread, NULL);
    pthread_join(thread, NULL);
    CUDA(cudaGetDevice(&current));
    expect(current == devices - 1, "another thread changed the device to %d", current);
    CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
    CUDA(cudaSetDevice(0));
    point("every thread has its own device and its own last error");
}

static void errors(void) {
    int version = 0, driver = 0;
    CUDA(cudaRuntimeGetVersion(&version));
    expect(version == CUDART_VERSION, "runtime %d", version);
    CUDA(cudaDriverGetVersion(&driver));
    expect(driver >= version, "driver %d is older than the runtime", driver);
    CUDA_IS(cudaErrorInvalidValue, cudaRuntimeGetVersion(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaDriverGetVersion(NULL));
    cudaGetLastError();
    point("versions");

    CUDA(cudaGetLastError());
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(1000));
    CUDA_IS(cudaErrorInvalidDevice, cudaPeekAtLastError());
    CUDA_IS(cudaErrorInvalidDevice, cudaPeekAtLastError());
    CUDA(cudaSetDevice(0)); /* success does not cover the error up */
    CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
    CUDA(cudaGetLastError());
    CUDA(cudaPeekAtLastError());
    CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(1000));
    CUDA_IS(cudaErrorInvalidValue, cudaGetDevice(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
    point("the last error: peeked at, taken, replaced by a later one");

#define NAME(code)                                                                \
    expect(strcmp(cudaGetErrorName(code), #code) == 0, #code " is called \"%s\"", \
           cudaGetErrorName(code));                                               \
    expect(strlen(cudaGetErrorString(code)) > 4 &&                                \
               strcmp(cudaGetErrorString(code), "unrecognized error code") != 0,  \
           #code " is explained as \"%s\"", cudaGetErrorString(code))
    NAME(cudaSuccess);
    NAME(cudaErrorInvalidValue);
    NAME(cudaErrorMemoryAllocation);
    NAME(cudaErrorInitializationError);
    NAME(cudaErrorInvalidMemcpyDirection);
    NAME(cudaErrorInsufficientDriver);
    NAME(cudaErrorNoDevice);
    NAME(cudaErrorInvalidDevice);
    NAME(cudaErrorInvalidResourceHandle);
    NAME(cudaErrorNotReady);
    NAME(cudaErrorIllegalAddress);
    NAME(cudaErrorPeerAccessAlreadyEnabled);
    NAME(cudaErrorPeerAccessNotEnabled);
    NAME(cudaErrorHostMemoryAlreadyRegistered);
    NAME(cudaErrorHostMemoryNotRegistered);
    NAME(cudaErrorNotPermitted);
    NAME(cudaErrorNotSupported);
    NAME(cudaErrorStreamCaptureUnsupported);
    NAME(cudaErrorStreamCaptureInvalidated);
    NAME(cudaErrorUnknown);
#undef NAME
    expect(strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0, "success is \"%s\"",
           cudaGetErrorString(cudaSuccess));
    expect(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code") == 0,
           "12345 is called \"%s\"", cudaGetErrorName((cudaError_t)12345));
    expect(strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0,
           "12345 is explained as \"%s\"", cudaGetErrorString((cudaError_t)12345));
    point("names and texts of errors");
}

static void allocations(void) {
    size_t before, during, after, total;
    char *blocks[10];
    CUDA(cudaMemGetInfo(&before, &total));
    for (size_t i = 0; i < 10; i++) {
        CUDA(cudaMalloc((void **)&blocks[i], (size_t)1 << (2 * i)));
        expect((uintptr_t)blocks[i] % 256 == 0, "address %p", (void *)blocks[i]);
        for (size_t j = 0; j < i; j++) {
            expect(blocks[i] >= blocks[j] + ((size_t)1 << (2 * j)) ||
                       blocks[i] + ((size_t)1 << (2 * i)) <= blocks[j],
                   "blocks %zu and %zu overlap", i, j);
        }
    }
    char *big;
    CUDA(cudaMalloc((void **)&big, 8 << 20));
    CUDA(cudaMemGetInfo(&during, &total));
    expect(during + (8 << 20) <= before, "%zu bytes free, then %zu", before, during);
    CUDA(cudaFree(big));
    for (int i = 0; i < 10; i++) {
        CUDA(cudaFree(blocks[i]));
    }
    CUDA(cudaMemGetInfo(&after, &total));
    expect(after >= during + (8 << 20) && after <= total, "%zu bytes free at the end",
           after);
    CUDA(cudaMemGetInfo(&before, &total));
    point("cudaMalloc: aligned, apart, and counted by cudaMemGetInfo");

    void *pointer = &before;
    CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&pointer, total * 2));
    CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
    CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&pointer, SIZE_MAX / 2));
    CUDA(cudaMalloc(&pointer, 64)); /* an allocation that failed spoils nothing */
    CUDA(cudaFree(pointer));
    CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
    point("more than the device has");

    CUDA(cudaFree(NULL));
    CUDA(cudaFreeHost(NULL));
    CUDA(cudaMalloc(&pointer, 0));
    CUDA(cudaFree(pointer));
    CUDA(cudaMalloc(&pointer, 64));
    CUDA(cudaFree(pointer));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(pointer));
    CUDA_IS(cudaErrorInvalidValue, cudaFree(&before));
    CUDA_IS(cudaErrorInvalidValue, cudaFreeHost(&before));
    CUDA_IS(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 64));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocHost((void **)NULL, 64));
    CUDA_IS(cudaErrorInvalidValue, cudaHostAlloc((void **)NULL, 64, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaHostAlloc(&pointer, 64, 0x1000));
    CUDA_IS(cudaErrorInvalidValue,
            cudaMallocManaged((void **)NULL, 64, cudaMemAttachGlobal));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocManaged(&pointer, 0, cudaMemAttachGlobal));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocManaged(&pointer, 64, 0x40));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocAsync((void **)NULL, 64, 0));
    cudaGetLastError();
    point("freeing null, freeing twice, wrong arguments");

    int *pinned, *managed, *device = new_ints(100);
    struct cudaPointerAttributes at;
    CUDA(cudaSetDevice(devices - 1));
    int *elsewhere = new_ints(100);
    CUDA(cudaHostAlloc((void **)&pinned, 400,
                       cudaHostAllocPortable | cudaHostAllocMapped));
    CUDA(cudaMallocManaged((void **)&managed, 400, cudaMemAttachGlobal));
    CUDA(cudaSetDevice(0));
    for (int i = 0; i < 100; i++) {
        managed[i] = pinned[i] = i; /* both are the host's to write */
    }
    CUDA(cudaPointerGetAttributes(&at, device));
    expect(at.type == cudaMemoryTypeDevice && at.device == 0 &&
               at.devicePointer == device,
           "device memory: type %d, device %d", (int)at.type, at.device);
    CUDA(cudaPointerGetAttributes(&at, elsewhere + 50));
    expect(at.type == cudaMemoryTypeDevice && at.device == devices - 1,
           "inside another device's memory: type %d, device %d", (int)at.type, at.device);
    CUDA(cudaPointerGetAttributes(&at, pinned));
    expect(at.type == cudaMemoryTypeHost && at.hostPointer == pinned,
           "pinned memory: type %d", (int)at.type);
    CUDA(cudaPointerGetAttributes(&at, managed));
    expect(at.type == cudaMemoryTypeManaged && at.hostPointer == managed &&
               at.devicePointer == managed,
           "managed memory: type %d", (int)at.type);
    CUDA(cudaPointerGetAttributes(&at, &before));
    expect(at.type == cudaMemoryTypeUnregistered, "a local variable: type %d",
           (int)at.type);
    CUDA_IS(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, device));
    cudaGetLastError();
    CUDA(cudaFree(device));
    CUDA(cudaFree(elsewhere));
    CUDA(cudaFree(managed));
    CUDA(cudaFreeHost(pinned));
    point("what a pointer points to");

    enum { OWN = 10000 };
    char *own = malloc(OWN);
    void *there = NULL;
    CUDA(cudaHostRegister(own + 10, OWN - 20, cudaHostRegisterPortable));
    CUDA_IS(cudaErrorHostMemoryAlreadyRegistered,
            cudaHostRegister(own, OWN, cudaHostRegisterDefault));
    CUDA_IS(cudaErrorHostMemoryAlreadyRegistered,
            cudaHostRegister(own + 100, 10, cudaHostRegisterDefault));
    CUDA(cudaPointerGetAttributes(&at, own + 10));
    expect(at.type == cudaMemoryTypeHost, "registered memory: type %d", (int)at.type);
    CUDA(cudaPointerGetAttributes(&at, own + OWN - 10));
    expect(at.type == cudaMemoryTypeUnregistered, "behind it: type %d", (int)at.type);
    CUDA(cudaHostGetDevicePointer(&there, own + 20, 0));
    expect(there == own + 20, "the device has it elsewhere");
    CUDA_IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&there, own, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&there, own + 20, 1));
    CUDA_IS(cudaErrorInvalidValue, cudaFreeHost(own + 10));
    CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own + 20));
    CUDA(cudaHostUnregister(own + 10));
    CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own + 10));
    CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(NULL, 10, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(own, 0, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaHostRegister(own, 10, 0x100));
    cudaGetLastError();
    free(own);
    point("memory of the program's own, registered");
}

/* Every kind between every two kinds of memory, by itself and as cudaMemcpyDefault. */
static void copies(void) {
    enum { N = 3001, KINDS = 5 };
    static const size_t lengths[] = {0, 1, 7, 256, N};
    static const char *const names[KINDS] = {"pageable", "pinned", "device", "managed",
                                             "other device"};
    static const bool on_host[KINDS] = {true, true, false, true, false};
    char *from[KINDS] = {0}, *to[KINDS] = {0}, pattern[N], got[N];
    for (int side = 0; side < 2; side++) {
        char **m = side ? to : from;
        m[0] = malloc(N);
        CUDA(cudaMallocHost((void **)&m[1], N));
        CUDA(cudaMalloc((void **)&m[2], N));
        CUDA(cudaMallocManaged((void **)&m[3], N, cudaMemAttachGlobal));
        CUDA(cudaSetDevice(devices - 1));
        CUDA(cudaMalloc((void **)&m[4], N));
        CUDA(cudaSetDevice(0));
    }
    int seed = 0;
    for (int s = 0; s < KINDS; s++) {
        for (int d = 0; d < KINDS; d++) {
            enum cudaMemcpyKind kind =
                on_host[s]
                    ? (on_host[d] ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                    : (on_host[d] ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
            for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
                for (int way = 0; way < 4; way++) {
                    size_t n = lengths[c], offset = n == N ? 0 : (size_t)(seed % 100);
                    seed++;
                    for (size_t i = 0; i < N; i++) {
                        pattern[i] = (char)(i * 31 + (size_t)seed);
                    }
                    CUDA(cudaMemcpy(from[s], pattern, N, cudaMemcpyDefault));
                    CUDA(cudaMemset(to[1], 0, 1)); /* pinned memory may be set, too */
                    memset(got, 0x55, N);
                    CUDA(cudaMemcpy(to[d], got, N, cudaMemcpyDefault));
                    CUDA(cudaDeviceSynchronize());
                    enum cudaMemcpyKind k = way % 2 ? cudaMemcpyDefault : kind;
                    if (way < 2) {
                        CUDA(cudaMemcpy(to[d] + offset, from[s], n, k));
                    } else {
                        CUDA(cudaMemcpyAsync(to[d] + offset, from[s], n, k, 0));
                    }
                    CUDA(cudaDeviceSynchronize());
                    CUDA(cudaMemcpy(got, to[d], N, cudaMemcpyDefault));
                    bool right = memcmp(got + offset, pattern, n) == 0;
                    for (size_t i = 0; i < N; i++) {
                        if (i < offset || i >= offset + n) {
                            right = right && got[i] == 0x55;
                        }
                    }
                    expect(right, "%zu bytes from %s to %s, kind %d, %s", n, names[s],
                           names[d], (int)k, way < 2 ? "cudaMemcpy" : "cudaMemcpyAsync");
                }
            }
        }
        point("copies from %s memory to every kind", names[s]);
    }
    char *device = to[2];
    CUDA(cudaMemset(device, 0x12, N));
    CUDA(cudaMemset(device + 5, 0x1ff, 10)); /* the low byte counts */
    CUDA(cudaMemset(device + 7, 0, 0));
    CUDA(cudaMemcpy(got, device, N, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) {
        char expected = i >= 5 && i < 15 ? (char)0xff : 0x12;
        if (!expect(got[i] == expected, "byte %d is %d", i, got[i])) {
            break;
        }
    }
    CUDA(cudaMemset(to[3], 9, N));
    CUDA(cudaDeviceSynchronize());
    expect(to[3][0] == 9 && to[3][N - 1] == 9, "managed memory was not set");
    point("cudaMemset sets bytes, these and no others");

    CUDA_IS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(device, got, 4, (enum cudaMemcpyKind)17));
    CUDA_IS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpyAsync(device, got, 4, (enum cudaMemcpyKind) - 1, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(NULL, got, 4, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(device, NULL, 4, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 4));
    CUDA(cudaMemcpy(device, got, 0, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidDevice, cudaMemcpyPeer(device, 1000, device, 0, 4));
    CUDA_IS(cudaErrorInvalidDevice, cudaMemcpyPeer(device, 0, device, -1, 4));
    cudaGetLastError();
    point("wrong arguments to copies");

    for (int side = 0; side < 2; side++) {
        char **m = side ? to : from;
        free(m[0]);
        CUDA(cudaFreeHost(m[1]));
        CUDA(cudaFree(m[2]));
        CUDA(cudaFree(m[3]));
        CUDA(cudaFree(m[4]));
    }
}

static void peers(void) {
    int can = -1, last = devices - 1;
    int *a = new_ints(1000);
    set_message(a, 1000, 3, 3);
    CUDA(cudaSetDevice(last));
    int *b = new_ints(1000);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaSetDevice(0));
    CUDA(cudaMemcpyPeer(b, last, a, 0, 4000));
    CUDA(cudaDeviceSynchronize());
    expect_message(b, 1000, 3, 3, "cudaMemcpyPeer");
    set_message(a, 1000, 4, 4);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpyPeerAsync(b, last, a, 0, 4000, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_message(b, 1000, 4, 4, "cudaMemcpyPeerAsync");
    CUDA(cudaMemcpyPeer(a + 500, 0, a, 0, 2000));
    CUDA(cudaDeviceSynchronize());
    point("copies between two devices");

    CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
    expect(can == 0, "a device is its own peer");
    CUDA(cudaDeviceCanAccessPeer(&can, 0, last));
    expect(can == 0 || can == 1, "can access: %d", can);
    CUDA_IS(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, devices));
    CUDA_IS(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, -1, 0));
    CUDA_IS(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
    CUDA_IS(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(devices, 0));
    CUDA(cudaDeviceCanAccessPeer(&can, 0, last));
    if (can) {
        CUDA_IS(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(last, 1));
        CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(last));
        CUDA(cudaDeviceEnablePeerAccess(last, 0));
        CUDA_IS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(last, 0));
        CUDA(cudaSetDevice(last)); /* access has one direction */
        CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(0));
        CUDA(cudaSetDevice(0));
        CUDA(cudaDeviceDisablePeerAccess(last));
        CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(last));
    }
    cudaGetLastError();
    point("peer access");
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaStreamDestroy(stream));
}

static void streams_and_events(void) {
    cudaStream_t here, there;
    cudaEvent_t event, event_there;
    float ms = -1;
    int *a = new_ints(100);
    CUDA(cudaStreamCreate(&here));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaSetDevice(devices - 1));
    int *b = new_ints(100);
    CUDA(cudaStreamCreate(&there));
    CUDA(cudaEventCreate(&event_there));
    CUDA(cudaSetDevice(0));
    /* A stream may wait for another device's event. */
    CUDA(cudaMemsetAsync(a, 5, 400, here));
    CUDA(cudaEventRecord(event, here));
    CUDA(cudaStreamWaitEvent(there, event, 0));
    CUDA(cudaMemcpyAsync(b, a, 400, cudaMemcpyDefault, there));
    CUDA(cudaStreamSynchronize(there));
    expect_ints(b, 100, 0x05050505, "copied on the other device's stream");
    CUDA(cudaEventQuery(event));
    point("an event orders streams of two devices");

    CUDA(cudaEventRecord(event_there, there)); /* the current device does not matter */
    CUDA(cudaEventSynchronize(event_there));
    CUDA(cudaStreamQuery(there));
    CUDA(cudaMemsetAsync(b, 6, 400, there));
    CUDA(cudaStreamSynchronize(there));
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventRecord(event, there));
    CUDA_IS(cudaErrorInvalidResourceHandle,
            cudaEventElapsedTime(&ms, event, event_there));
    cudaGetLastError();
    point("an event is recorded on, and compared within, its own device");

    cudaEvent_t made;
    cudaStream_t stream;
    CUDA_IS(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 0x80));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamCreateWithPriority(NULL, 0, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaEventCreate(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&made, 0x8000));
    CUDA_IS(cudaErrorInvalidValue,
            cudaEventCreateWithFlags(&made, cudaEventInterprocess));
    CUDA_IS(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, event, event));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamWaitEvent(here, event, 0x70));
    CUDA_IS(cudaErrorInvalidValue, cudaLaunchHostFunc(here, NULL, NULL));
    cudaGetLastError();
    /* The manual leaves open which of two codes a null event gets. */
    expect(cudaEventRecord(NULL, here) != cudaSuccess,
           "cudaEventRecord took a null event");
    expect(cudaEventQuery(NULL) != cudaSuccess, "cudaEventQuery took a null event");
    expect(cudaEventSynchronize(NULL) != cudaSuccess, "cudaEventSynchronize took null");
    expect(cudaEventDestroy(NULL) != cudaSuccess, "cudaEventDestroy took null");
    expect(cudaStreamWaitEvent(here, NULL, 0) != cudaSuccess,
           "cudaStreamWaitEvent took null");
    expect(cudaStreamDestroy(0) != cudaSuccess, "cudaStreamDestroy took stream 0");
    expect(cudaGetLastError() != cudaSuccess, "none of them left an error");
    point("wrong arguments to streams and events");

    CUDA(cudaStreamDestroy(here));
    CUDA(cudaStreamDestroy(there));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaEventDestroy(event_there));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
}

static void captures(void) {
    cudaStream_t stream, blocking;
    cudaGraph_t graph = (cudaGraph_t)&graph;
    cudaGraphExec_t exec;
    int *a = new_ints(10);
    CUDA(cudaMemset(a, 0, 40));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreate(&blocking));
    expect(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal) != cudaSuccess,
           "stream 0 was captured");
    expect(cudaStreamEndCapture(stream, &graph) != cudaSuccess,
           "a capture ended that had not begun");
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess,
           "a capture began twice");
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream)); /* an empty graph is a graph */
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiate(NULL, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamIsCapturing(stream, NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, NULL, 0));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(NULL, stream));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphDestroy(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaGraphExecDestroy(NULL));
    cudaGetLastError();
    point("captures begun and ended in the wrong place, an empty graph");

    /* CUDA Programming Guide, Prohibited and Unhandled Operations: a stream that is being
     * captured can't be waited for, and the attempt spoils the capture. */
    enum cudaStreamCaptureStatus status;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CUDA(cudaMemsetAsync(a, 1, 40, stream));
    expect(cudaStreamSynchronize(stream) != cudaSuccess, "waited for a captured stream");
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusInvalidated, "status %d", (int)status);
    graph = (cudaGraph_t)&graph;
    expect(cudaStreamEndCapture(stream, &graph) != cudaSuccess,
           "a spoilt capture ended well");
    expect(graph == NULL, "a spoilt capture gave a graph");
    cudaGetLastError();
    CUDA(cudaMemsetAsync(a, 2, 40, stream)); /* the stream works again */
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 10, 0x02020202, "after a spoilt capture");
    point("a capture spoilt by a wait");

    /* Stream 0 would have to wait for the blocking stream that is being captured. */
    CUDA(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
    CUDA_IS(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(a, 3, 40, 0));
    cudaStreamEndCapture(blocking, &graph);
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    expect_ints(a, 10, 0x02020202, "after a refused set");
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(blocking));
    CUDA(cudaFree(a));
    point("the default stream while a blocking stream is captured");
}

/* The per-thread stream belongs to a thread and a device, and goes with either. */
static void *use_its_stream(void *memory) {
    int *a = memory;
    for (int d = 0; d < 2; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaMemsetAsync(a + 10 * d, d + 1, 40, cudaStreamPerThread));
        CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    }
    return NULL;
}

static void per_thread_streams(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        int *a = new_ints(20);
        CUDA(cudaMemsetAsync(a, 9, 80, cudaStreamPerThread));
        CUDA(cudaStreamSynchronize(cudaStreamPerThread));
        pthread_create(&thread, NULL, use_its_stream, a);
        pthread_join(thread, NULL);
        expect_ints(a, 10, 0x01010101, "set on device 0");
        expect_ints(a + 10, 10, 0x02020202, "set on device 1");
        CUDA(cudaDeviceReset());
    }
    point("the per-thread stream of several threads, devices, and after a reset");
}

static void reset(void) {
    int *a = new_ints(1 << 20);
    set_ints(a, 10, 1);
    CUDA(cudaDeviceReset());
    int *b = new_ints(1000);
    set_message(b, 1000, 1, 1);
    expect_message(b, 1000, 1, 1, "after cudaDeviceReset");
    CUDA(cudaFree(b));
    expect(cudaFree(a) != cudaSuccess, "memory outlived cudaDeviceReset");
    cudaGetLastError();
    point("cudaDeviceReset takes everything away, and the device works on");
}

/* Rows that are a pitch apart: those bytes are copied or set, and none between them. */
static void blocks(void) {
    enum { ROWS = 5, WIDTH = 7, WIDE = 16 };
    unsigned char from[ROWS * WIDE], to[ROWS * WIDTH], all[ROWS * WIDE];
    unsigned char *device, *pinned, *padded;
    size_t pitch = 0;
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&device, sizeof all));
    CUDA(cudaMallocHost((void **)&pinned, sizeof all));
    CUDA(cudaMallocPitch((void **)&padded, &pitch, WIDTH, ROWS));
    expect(pitch >= WIDTH && pitch % 512 == 0, "a pitch of %zu bytes", pitch);
    for (int i = 0; i < ROWS * WIDE; i++) {
        from[i] = (unsigned char)i;
        pinned[i] = 0xaa;
    }
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        CUDA(cudaMemset(device, 0xee, sizeof all));
        memset(to, 0, sizeof to);
        /* From columns of the host to columns of the device, and by way of two more. */
        if (asynchronous) {
            CUDA(cudaDeviceSynchronize());
            CUDA(cudaMemcpy2DAsync(device + 3, WIDE, from + 2, WIDE, WIDTH, ROWS,
                                   cudaMemcpyHostToDevice, stream));
            CUDA(cudaMemcpy2DAsync(padded, pitch, device + 3, WIDE, WIDTH, ROWS,
                                   cudaMemcpyDeviceToDevice, stream));
            CUDA(cudaMemcpy2DAsync(pinned, WIDTH, padded, pitch, WIDTH, ROWS,
                                   cudaMemcpyDefault, stream));
            CUDA(cudaMemset2DAsync(device + 1, WIDE, 0x33, 2, ROWS - 1, stream));
            CUDA(cudaStreamSynchronize(stream));
            memcpy(to, pinned, sizeof to);
        } else {
            CUDA(cudaMemcpy2D(device + 3, WIDE, from + 2, WIDE, WIDTH, ROWS,
                              cudaMemcpyHostToDevice));
            CUDA(cudaMemcpy2D(padded, pitch, device + 3, WIDE, WIDTH, ROWS,
                              cudaMemcpyDeviceToDevice));
            CUDA(cudaMemcpy2D(to, WIDTH, padded, pitch, WIDTH, ROWS,
                              cudaMemcpyDeviceToHost));
            CUDA(cudaMemset2D(device + 1, WIDE, 0x33, 2, ROWS - 1));
        }
        CUDA(cudaMemcpy(all, device, sizeof all, cudaMemcpyDeviceToHost));
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < WIDE; i++) {
                int there = all[row * WIDE + i], in = i - 3;
                int wanted = in >= 0 && in < WIDTH ? from[row * WIDE + 2 + in]
                             : row < ROWS - 1 && (i == 1 || i == 2) ? 0x33
                                                                    : 0xee;
                expect(there == wanted, "row %d, byte %d is %d, not %d", row, i, there,
                       wanted);
                if (in >= 0 && in < WIDTH)
                    expect(to[row * WIDTH + in] == wanted, "row %d, byte %d came as %d",
                           row, in, to[row * WIDTH + in]);
            }
    }
    point("rows of a pitch");

    CUDA_IS(cudaErrorInvalidPitchValue,
            cudaMemcpy2D(device, 4, from, WIDE, 5, 2, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidPitchValue,
            cudaMemcpy2D(device, WIDE, from, 4, 5, 2, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidPitchValue, cudaMemset2D(device, 4, 0, 5, 2));
    CUDA_IS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy2D(device, WIDE, from, WIDE, 1, 1, (enum cudaMemcpyKind)9));
    CUDA_IS(cudaErrorInvalidValue, cudaMallocPitch((void **)&device, NULL, 4, 4));
    CUDA(cudaMemcpy2D(device, WIDE, from, WIDE, 0, ROWS, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy2D(device, WIDE, from, WIDE, WIDTH, 0, cudaMemcpyHostToDevice));
    cudaGetLastError();
    CUDA(cudaFree(device));
    CUDA(cudaFree(padded));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaStreamDestroy(stream));
    point("rows: errors, and nothing");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        bail("two devices are needed");
    }
    device_calls();
    threads();
    errors();
    allocations();
    copies();
    blocks();
    peers();
    streams_and_events();
    captures();
    per_thread_streams();
    reset();
    return finish();
}
