/*
 * modes.h: what bandwidth needs for --register and --graph.
 */
#ifndef MODES_H
#define MODES_H

#include "older.h"

/* GPU memory. If it is to be registered, NCCL knows it on all ranks, so that a GPU can
 * write into another's: all ranks call this together. *window is NULL if NCCL has no use
 * for one. */
static inline float *buffer_malloc(ncclComm_t comm, size_t bytes, bool registered,
                                   ncclWindow_t *window) {
    float *buffer;
    *window = NULL;
    if (!registered) {
        CHECK_CUDA(cudaMalloc((void **)&buffer, bytes));
        return buffer;
    }
    CHECK_NCCL(ncclMemAlloc((void **)&buffer, bytes));
    CHECK_NCCL(
        ncclCommWindowRegister(comm, buffer, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
    return buffer;
}

static inline void buffer_free(ncclComm_t comm, float *buffer, bool registered,
                               ncclWindow_t window) {
    if (window)
        CHECK_NCCL(ncclCommWindowDeregister(comm, window));
    if (registered)
        CHECK_NCCL(ncclMemFree(buffer));
    else
        CHECK_CUDA(cudaFree(buffer));
}

/* Between these two, the stream's work is recorded instead of done. The graph that comes
 * out launches all of it with one call. */
static inline void record_begin(cudaStream_t stream) {
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static inline cudaGraphExec_t record_end(cudaStream_t stream) {
    cudaGraph_t recorded;
    cudaGraphExec_t graph;
    CHECK_CUDA(cudaStreamEndCapture(stream, &recorded));
    CHECK_CUDA(cudaGraphInstantiate(&graph, recorded, 0));
    CHECK_CUDA(cudaGraphDestroy(recorded));
    CHECK_CUDA(cudaGraphLaunch(graph, stream)); // the first one is slower
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return graph;
}

#endif
