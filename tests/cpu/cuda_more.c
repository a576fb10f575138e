/*
 * What programs bring along beside the usual calls of CUDA: questions about streams,
 * callbacks, events in a graph, and settings. One process.
 */
#define TAP_ALONE
#include "ints.h"
#include <cuda.h> // has the types of the driver, and no calls
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>

static void streams(void) {
    int least, greatest, priority;
    unsigned int flags;
    cudaStream_t stream, second;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaSetDevice(1));
    CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 7));
    CUDA(cudaStreamCreate(&second));
    CUDA(cudaStreamGetPriority(stream, &priority));
    CUDA(cudaStreamGetFlags(stream, &flags));
    expect(priority == greatest && flags == cudaStreamNonBlocking,
           "priority %d, flags %u", priority, flags);
    CUDA(cudaStreamGetFlags(second, &flags));
    expect(flags == cudaStreamDefault, "the second stream");
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(second));
    CUDA(cudaSetDevice(0));
    point("streams say what they are");
}

static atomic_int called;
static void CUDART_CB callback(cudaStream_t stream, cudaError_t status, void *argument) {
    called = status == cudaSuccess && stream == *(cudaStream_t *)argument ? 1 : -1;
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

static void captured_record(void) {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus status;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusActive, "status %d", (int)status);
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
    CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CUDA(cudaGetDeviceFlags(&flags));
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 12345));
    CUDA(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
    expect(flags & cudaDeviceScheduleBlockingSync && bytes == 12345, "%u, %zu", flags,
           bytes);
    expect(cudaDeviceSetLimit((enum cudaLimit)99, 1) == cudaErrorUnsupportedLimit,
           "limit");
    cudaGetLastError();
    CUDA(cudaProfilerStart());
    nvtxRangePushA("range");
    nvtxRangePop();
    CUDA(cudaProfilerStop());
    point("settings, profiler and NVTX");
}

int main(void) {
    streams();
    callbacks();
    captured_record();
    settings();
    return finish();
}
