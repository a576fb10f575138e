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

static void settings(void) {
    size_t bytes = 0;
    CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 12345));
    CUDA(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
    expect(bytes == 12345, "%zu", bytes);
    expect(cudaSetDeviceFlags(3) == cudaErrorInvalidValue, "flags");
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
    settings();
    return finish();
}
