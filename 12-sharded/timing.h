/*
 * timing.h: what sharded does with --time. It uses the program's own functions.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Times a step without communication and with it. They take turns, so that a disturbance
 * on the machine affects both alike. */
static void measure(struct training *t) {
    enum { STEPS = 10 };
    struct stopwatch watches[2] = {{0}};
    for (int w = 0; !stopwatch_settled(&watches[1]); w = !w) {
        t->communicate = w == 1;
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++)
            train(t, 0);
        CHECK_CUDA(cudaStreamSynchronize(t->computing));
        stopwatch_stop(&watches[w], STEPS);
    }
    report_times(watches[0].seconds, watches[1].seconds);
}

#endif
