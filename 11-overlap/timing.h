/*
 * timing.h: what overlap does with --time. It uses the program's own functions.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Times the step without communication, the communication without the step, and both.
 * They take turns, so that a disturbance on the machine affects all three alike. */
static void measure(struct training *t, int rank) {
    enum { COMPUTE, REDUCE, BOTH, STEPS = 10 };
    struct stopwatch watches[3] = {{0}};
    for (int w = COMPUTE; !stopwatch_settled(&watches[BOTH]); w = (w + 1) % 3) {
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++) {
            if (w != REDUCE)
                train(t, 0, w == BOTH);
            for (size_t b = 0; w == REDUCE && b < t->nbuckets; b++)
                send(t, &t->buckets[b]);
        }
        CHECK_CUDA(cudaStreamSynchronize(t->computing));
        CHECK_CUDA(cudaStreamSynchronize(t->sending));
        stopwatch_stop(&watches[w], STEPS);
    }
    const double compute = watches[COMPUTE].seconds, reduce = watches[REDUCE].seconds;
    const double both = watches[BOTH].seconds;
    if (rank == 0)
        printf("computing only   %9.3f ms a step\nall-reduce only  %9.3f ms\n"
               "both             %9.3f ms, %.3f of computing only\n"
               "hidden           %9.2f of the shorter of the two\n",
               compute * 1e3, reduce * 1e3, both * 1e3, both / compute,
               (compute + reduce - both) / fmin(compute, reduce));
}

#endif
