/*
 * setup.h: the events and the buffers of pipelined_ring.
 */
#ifndef SETUP_H
#define SETUP_H

#include "older.h"

static void make_events(struct ring *r) {
    for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++) {
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->received, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->done, cudaEventDisableTiming));
    }
    CHECK_CUDA(cudaEventCreateWithFlags(&r->begin, cudaEventDisableTiming));
    for (size_t p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventCreateWithFlags(&r->added[p], cudaEventDisableTiming));
}

/* In the reverse order of making them. */
static void free_lanes(struct ring *r) {
    for (size_t p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventDestroy(r->added[p]));
    CHECK_CUDA(cudaEventDestroy(r->begin));
    CHECK_CUBLAS(cublasDestroy(r->blas));
    CHECK_CUDA(cudaStreamDestroy(r->adding));
    for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++) {
        CHECK_CUDA(cudaEventDestroy(lane->done));
        CHECK_CUDA(cudaEventDestroy(lane->received));
        CHECK_CUDA(cudaStreamDestroy(lane->stream));
        CHECK_NCCL(ncclCommDestroy(lane->comm));
    }
}

/* Memory from NCCL for this rank's numbers and the sum, registered with every lane: a
 * message then goes straight from one GPU's buffer into the next GPU's (lesson 18). */
static void make_buffers(struct ring *r) {
    float **buffers[2] = {&r->mine, &r->sum};
    const size_t bytes = r->count * sizeof(float);
    for (int b = 0; b < 2; b++) {
        CHECK_NCCL(ncclMemAlloc((void **)buffers[b], bytes));
        for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++)
            CHECK_NCCL(
                ncclCommRegister(lane->comm, *buffers[b], bytes, &lane->registered[b]));
    }
}

static void free_buffers(struct ring *r) {
    for (int b = 1; b >= 0; b--) {
        for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++)
            CHECK_NCCL(ncclCommDeregister(lane->comm, lane->registered[b]));
        CHECK_NCCL(ncclMemFree(b == 0 ? r->mine : r->sum));
    }
}

#endif
