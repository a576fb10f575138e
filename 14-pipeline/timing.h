/*
 * timing.h: what pipeline does with --time. It uses the program's own functions.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Times a step, and its computing alone on the slowest rank. They take turns, so that a
 * disturbance on the machine affects both alike. */
static void measure(struct pipeline *p) {
    struct stopwatch alone = {0}, step = {0};
    while (!stopwatch_settled(&step)) {
        stopwatch_start(&alone);
        for (size_t micro = 0; micro < p->micro; micro++) {
            forward(p, 0, micro);
            backward(p, micro);
        }
        CHECK_CUDA(cudaStreamSynchronize(p->stream));
        stopwatch_stop(&alone, 1);
        stopwatch_start(&step);
        train(p, 0);
        CHECK_CUDA(cudaStreamSynchronize(p->stream));
        stopwatch_stop(&step, 1);
    }
    report_times(step.seconds, alone.seconds);
}

#endif
