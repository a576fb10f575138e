/*
 * timing.h: how pipelined_ring --time times an all-reduce.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Queues NCCL's all-reduce of the same numbers. */
static void queue_nccl(struct ring *r) {
    CHECK_NCCL(ncclAllReduce(r->mine, r->sum, r->count, ncclFloat32, ncclSum, r->comm,
                             r->stream));
}

/* Seconds of one all-reduce, of which up to 20 are queued one after the other and waited
 * for once, as in lesson 06. */
static double seconds_of(void (*queue)(struct ring *r), struct ring *r) {
    struct stopwatch warm = {0}, watch = {0};
    stopwatch_start(&warm);
    queue(r);
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    stopwatch_stop(&warm, 1);
    const double fit = 0.02 / warm.seconds; // so many take 20 ms
    const int repeat = fit < 1 ? 1 : fit < 20 ? (int)fit : 20;
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < repeat; i++)
            queue(r);
        CHECK_CUDA(cudaStreamSynchronize(r->stream));
        stopwatch_stop(&watch, repeat);
    }
    return watch.seconds;
}

/* Times the ring and NCCL's all-reduce, and prints both. */
static void measure(struct ring *r) {
    queue_nccl(r); // not timed: in the first call NCCL also connects the ranks
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    const double ring = seconds_of(queue_ring, r), nccl = seconds_of(queue_nccl, r);
    report_times(r->count * sizeof(float), r->pieces, ring, nccl);
}

#endif
