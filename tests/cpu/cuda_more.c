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

static void settings(void) {
    CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    expect(cudaSetDeviceFlags(3) == cudaErrorInvalidValue, "flags");
    cudaGetLastError();
    CUDA(cudaProfilerStart());
    nvtxRangePushA("range");
    nvtxRangePop();
    CUDA(cudaProfilerStop());
    point("settings, profiler and NVTX");
}

int main(void) {
    streams();
    settings();
    return finish();
}
