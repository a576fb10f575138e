/*
 * What programs bring along beside the usual calls of CUDA: questions about streams,
 * callbacks, pools, copies of three dimensions, graphs that are put together node by
 * node, settings, and the driver. One process.
 */
#define TAP_ALONE
#include "ints.h"
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>

static void streams(void) {
    int least, greatest, priority, device;
    unsigned int flags;
    unsigned long long one, other;
    cudaStream_t stream, second;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaSetDevice(1));
    CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 7));
    CUDA(cudaStreamCreate(&second));
    CUDA(cudaStreamGetPriority(stream, &priority));
    CUDA(cudaStreamGetFlags(stream, &flags));
    CUDA(cudaStreamGetDevice(stream, &device));
    expect(priority == greatest && flags == cudaStreamNonBlocking && device == 1,
           "priority %d, flags %u, device %d", priority, flags, device);
    CUDA(cudaStreamGetFlags(second, &flags));
    CUDA(cudaStreamGetId(stream, &one));
    CUDA(cudaStreamGetId(second, &other));
    expect(flags == cudaStreamDefault && one != other, "the second stream");
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(second));
    CUDA(cudaSetDevice(0));
    point("streams say what they are");
}

static atomic_int called;
static void CUDART_CB callback(cudaStream_t stream, cudaError_t status, void *argument) {
    called = status == cudaSuccess && stream == *(cudaStream_t *)argument ? 1 : -1;
}
static void CUDART_CB count(void *by) {
    called += *(int *)by;
}

static void callbacks(void) {
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamAddCallback(stream, callback, &stream, 0));
    CUDA(cudaStreamSynchronize(stream));
    expect(called == 1, "called: %d", called);
    expect(cudaStreamAddCallback(stream, callback, NULL, 1) == cudaErrorInvalidValue,
           "flags");
    cudaGetLastError();
    CUDA(cudaStreamDestroy(stream));
    point("cudaStreamAddCallback");
}

static void pools(void) {
    cudaMemPool_t pool, own;
    unsigned long long threshold = 1 << 20, used;
    int *a, device;
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 1}};
    struct cudaPointerAttributes about;
    CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    threshold = 0;
    CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    expect(threshold == 1 << 20, "threshold %llu", threshold);
    CUDA(cudaMemPoolCreate(&own, &props));
    CUDA(cudaMallocFromPoolAsync((void **)&a, 4000, own, NULL));
    CUDA(cudaPointerGetAttributes(&about, a));
    CUDA(cudaGetDevice(&device));
    expect(about.device == 1 && device == 0, "device %d, now %d", about.device, device);
    CUDA(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
    expect(used >= 4000, "%llu bytes are used", used);
    CUDA(cudaFreeAsync(a, NULL));
    CUDA(cudaDeviceSynchronize());
    struct cudaMemAccessDesc other = {{cudaMemLocationTypeDevice, 0},
                                      cudaMemAccessFlagsProtReadWrite};
    enum cudaMemAccessFlags before, after, itself;
    struct cudaMemLocation home = props.location;
    CUDA(cudaMemPoolGetAccess(&before, own, &other.location));
    CUDA(cudaMemPoolSetAccess(own, &other, 1));
    CUDA(cudaMemPoolGetAccess(&after, own, &other.location));
    CUDA(cudaMemPoolGetAccess(&itself, own, &home));
    expect(before == cudaMemAccessFlagsProtNone &&
               after == cudaMemAccessFlagsProtReadWrite &&
               itself == cudaMemAccessFlagsProtReadWrite,
           "access: %d, %d, %d", before, after, itself);
    CUDA(cudaMemPoolTrimTo(own, 0));
    CUDA(cudaMemPoolDestroy(own));
    expect(cudaMemPoolDestroy(pool) == cudaErrorInvalidValue, "a device's own pool");
    cudaGetLastError();
    point("memory pools");
}

static void managed(void) {
    int *a, *b;
    struct cudaMemLocation place = {cudaMemLocationTypeDevice, 1};
    CUDA(cudaMallocManaged((void **)&a, 4000, cudaMemAttachGlobal));
    CUDA(cudaMalloc((void **)&b, 4000));
    CUDA(cudaMemAdvise(a, 4000, cudaMemAdviseSetPreferredLocation, place));
    CUDA(cudaMemPrefetchAsync(a, 4000, place, 0, NULL));
    expect(cudaMemPrefetchAsync(b, 4000, place, 0, NULL) == cudaErrorInvalidValue,
           "memory that is not managed");
    cudaGetLastError();
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("advice about managed memory is taken");
}

enum { X = 5, Y = 4, Z = 3 };
static void three_dimensions(void) {
    int host[Z][Y][X], back[Z][Y][X], wrong = 0;
    struct cudaPitchedPtr device;
    struct cudaExtent extent = make_cudaExtent(X * sizeof(int), Y, Z);
    for (int i = 0; i < X * Y * Z; i++)
        (&host[0][0][0])[i] = i;
    CUDA(cudaMalloc3D(&device, extent));
    CUDA(cudaMemset3D(device, 0, extent));
    struct cudaMemcpy3DParms in = {.srcPtr =
                                       make_cudaPitchedPtr(host, X * sizeof(int), X, Y),
                                   .dstPtr = device,
                                   .extent = extent,
                                   .kind = cudaMemcpyHostToDevice};
    CUDA(cudaMemcpy3D(&in));
    struct cudaMemcpy3DParms out = {.srcPtr = device,
                                    .dstPtr =
                                        make_cudaPitchedPtr(back, X * sizeof(int), X, Y),
                                    .extent = extent,
                                    .kind = cudaMemcpyDeviceToHost};
    CUDA(cudaMemcpy3DAsync(&out, NULL));
    CUDA(cudaStreamSynchronize(NULL));
    for (int i = 0; i < X * Y * Z; i++)
        wrong += (&back[0][0][0])[i] != i;
    expect(wrong == 0, "%d elements are wrong", wrong);
    CUDA(cudaFree(device.ptr));
    point("copies of three dimensions");
}

static void nodes(void) {
    int *a, *b, host[100], three = 3;
    cudaGraph_t graph, copy;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, move, call, note, all[8];
    cudaEvent_t event;
    size_t n = 8;
    enum cudaGraphNodeType type;
    const struct cudaHostNodeParams function = {count, &three};
    CUDA(cudaMalloc((void **)&a, sizeof host));
    CUDA(cudaMalloc((void **)&b, sizeof host));
    CUDA(cudaEventCreate(&event));
    const struct cudaMemsetParams zero = {
        .dst = a, .elementSize = 4, .width = 100, .height = 1};
    called = 0;
    CUDA(cudaGraphCreate(&graph, 0));
    // The copy is added first, and comes after what fills its source.
    CUDA(cudaGraphAddMemcpyNode1D(&move, graph, NULL, 0, b, a, sizeof host,
                                  cudaMemcpyDeviceToDevice));
    CUDA(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &zero));
    CUDA(cudaGraphAddDependencies(graph, &set, &move, NULL, 1));
    CUDA(cudaGraphAddHostNode(&call, graph, &move, 1, &function));
    CUDA(cudaGraphAddEventRecordNode(&note, graph, &call, 1, event));
    CUDA(cudaGraphGetNodes(graph, all, &n));
    CUDA(cudaGraphNodeGetType(all[1], &type));
    expect(n == 4 && all[0] == move && type == cudaGraphNodeTypeMemset, "%zu nodes", n);
    n = 8;
    CUDA(cudaGraphGetRootNodes(graph, all, &n));
    expect(n == 1 && all[0] == set, "%zu roots", n);
    CUDA(cudaGraphClone(&copy, graph));
    CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CUDA(cudaGraphUpload(exec, NULL));
    CUDA(cudaGraphLaunch(exec, NULL));
    CUDA(cudaGraphLaunch(exec, NULL));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += host[i] != 0;
    expect(wrong == 0 && called == 6, "%d elements are wrong, called %d", wrong, called);
    cudaGraphExecUpdateResultInfo result;
    CUDA(cudaGraphExecUpdate(exec, copy, &result));
    CUDA(cudaGraphAddEmptyNode(&all[0], copy, NULL, 0));
    expect(cudaGraphExecUpdate(exec, copy, &result) == cudaErrorGraphExecUpdateFailure &&
               result.result == cudaGraphExecUpdateErrorTopologyChanged,
           "a graph with one node more");
    cudaGetLastError();
    CUDA(cudaGraphAddDependencies(graph, &move, &set, NULL, 1));
    cudaGraphExec_t none;
    expect(cudaGraphInstantiate(&none, graph, 0) == cudaErrorInvalidValue, "a circle");
    cudaGetLastError();
    CUDA(cudaGraphLaunch(exec, NULL));
    CUDA(cudaDeviceSynchronize());
    expect(called == 9, "called %d", called);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(copy));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("a graph, node by node");
}

/* A child graph is one node: all of it comes after what its node comes after. */
static void child_graph(void) {
    int *a, *b, host[100], three = 3;
    cudaGraph_t graph, child;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, move, node, call, all[8];
    size_t n = 8;
    enum cudaGraphNodeType type;
    const struct cudaHostNodeParams function = {count, &three};
    CUDA(cudaMalloc((void **)&a, sizeof host));
    CUDA(cudaMalloc((void **)&b, sizeof host));
    const struct cudaMemsetParams ones = {
        .dst = a, .value = 1, .elementSize = 1, .width = sizeof host, .height = 1};
    CUDA(cudaGraphCreate(&child, 0));
    CUDA(cudaGraphAddMemcpyNode1D(&move, child, NULL, 0, b, a, sizeof host,
                                  cudaMemcpyDeviceToDevice));
    CUDA(cudaGraphAddHostNode(&call, child, &move, 1, &function));
    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    CUDA(cudaGraphAddHostNode(&call, graph, &node, 1, &function));
    CUDA(cudaGraphGetRootNodes(graph, all, &n));
    expect(n == 1 && all[0] == node, "%zu roots", n);
    CUDA(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &ones));
    CUDA(cudaGraphAddDependencies(graph, &set, &node, NULL, 1));
    CUDA(cudaGraphDestroy(child)); // the node has a copy
    n = 8;
    CUDA(cudaGraphGetNodes(graph, all, &n));
    CUDA(cudaGraphNodeGetType(node, &type));
    expect(n == 3 && all[0] == node && type == cudaGraphNodeTypeGraph, "%zu nodes", n);
    n = 8;
    CUDA(cudaGraphGetRootNodes(graph, all, &n));
    expect(n == 1 && all[0] == set, "%zu roots", n);
    called = 0;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, NULL));
    CUDA(cudaGraphLaunch(exec, NULL));
    CUDA(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += host[i] != 0x01010101;
    expect(wrong == 0 && called == 12, "%d elements are wrong, called %d", wrong, called);
    CUDA_IS(cudaErrorInvalidValue,
            cudaGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
    cudaGetLastError();
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("a graph in a graph");
}

static void held(void) {
    static int one = 1;
    cudaUserObject_t object;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    called = 0;
    CUDA(cudaUserObjectCreate(&object, &one, count, 1, cudaUserObjectNoDestructorSync));
    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    expect(called == 0, "it goes before the executable graph does");
    CUDA(cudaGraphExecDestroy(exec));
    expect(called == 1, "it stays");
    point("what a graph holds goes with it");
}

static void captured_record(void) {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    CUDA(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
    expect(status == cudaStreamCaptureStatusActive && id != 0, "capture %llu", id);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaStreamDestroy(stream));
    point("an event that each launch of a graph records");
}

static void settings(void) {
    unsigned int flags = 0;
    size_t bytes = 0;
    void *host;
    CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CUDA(cudaGetDeviceFlags(&flags));
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 12345));
    CUDA(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
    expect(flags & cudaDeviceScheduleBlockingSync && bytes == 12345, "%u, %zu", flags,
           bytes);
    expect(cudaDeviceSetLimit((enum cudaLimit)99, 1) == cudaErrorUnsupportedLimit,
           "limit");
    cudaGetLastError();
    CUDA(cudaHostAlloc(&host, 64, cudaHostAllocMapped));
    CUDA(cudaHostGetFlags(&flags, host));
    expect(flags == cudaHostAllocMapped, "flags %u", flags);
    CUDA(cudaFreeHost(host));
    CUDA(cudaProfilerStart());
    nvtxRangePushA("range");
    nvtxRangePop();
    CUDA(cudaProfilerStop());
    point("settings, profiler and NVTX");
}

static void driver(void) {
    int count, value, *a;
    CUdevice device;
    CUcontext context;
    CUdeviceptr start;
    size_t bytes;
    const char *name;
    char text[64];
    bool right = cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS &&
                 cuDeviceGet(&device, 1) == CUDA_SUCCESS &&
                 cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS &&
                 cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) ==
                     CUDA_SUCCESS;
    expect(right && count == 3 && value == 32, "%d devices, warps of %d", count, value);
    right = cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS &&
            cuCtxSetCurrent(context) == CUDA_SUCCESS &&
            cuCtxGetDevice(&device) == CUDA_SUCCESS;
    expect(right && device == 1, "device %d", device);
    CUDA(cudaSetDevice(0));
    CUDA(cudaMalloc((void **)&a, 4000));
    right = cuMemGetAddressRange(&start, &bytes, (CUdeviceptr)(a + 10)) == CUDA_SUCCESS;
    expect(right && start == (CUdeviceptr)a && bytes == 4000, "%zu bytes", bytes);
    CUDA(cudaFree(a));
    expect(cuDeviceGet(&device, 99) == CUDA_ERROR_INVALID_DEVICE &&
               cuGetErrorName(CUDA_ERROR_INVALID_DEVICE, &name) == CUDA_SUCCESS &&
               strcmp(name, "CUDA_ERROR_INVALID_DEVICE") == 0,
           "an error's name");
    point("the driver");
}

int main(void) {
    streams();
    callbacks();
    pools();
    managed();
    three_dimensions();
    nodes();
    child_graph();
    held();
    captured_record();
    settings();
    driver();
    return finish();
}
