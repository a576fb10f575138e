/*
 * timing.h: what grid does with --time. It uses the program's own functions.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Times a step without communication, with that of the rows, and with both. They take
 * turns, so that a disturbance on the machine affects all three alike. */
static void measure(struct grid *g) {
    enum { COMPUTE, ROWS, BOTH, STEPS = 10 };
    struct stopwatch watches[3] = {{0}};
    for (int w = COMPUTE; !stopwatch_settled(&watches[BOTH]); w = (w + 1) % 3) {
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++)
            train(g, 0, w != COMPUTE, w == BOTH);
        CHECK_CUDA(cudaStreamSynchronize(g->stream));
        stopwatch_stop(&watches[w], STEPS);
    }
    report_times(watches[COMPUTE].seconds, watches[ROWS].seconds, watches[BOTH].seconds);
}

#endif
