/*
 * timing.h: what experts does with --time. It uses the program's own functions, and times
 * the communication of a forward pass without the computing.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Times how long a layer's tokens take there and back, with an exchange of counts first
 * and with padded blocks of equal size. They take turns, so that a disturbance on the
 * machine affects both alike. */
static void measure(struct training *t) {
    enum { TRIPS = 10 };
    struct stopwatch watches[2] = {{0}};
    float *visiting = t->expert.activation[0];
    size_t capacity = t->capacity;
    t->capacity = 0;
    give_places(t, 0, 0);
    if (capacity == 0) // large enough that no token is dropped
        capacity = reference_largest(t->leave[0], t->nranks);
    for (int w = 0; !stopwatch_settled(&watches[1]); w = !w) {
        t->capacity = w == 0 ? 0 : capacity;
        give_places(t, 0, 0);
        stopwatch_start(&watches[w]);
        for (int i = 0; i < TRIPS; i++) {
            if (w == 0)
                exchange_counts(t, 0);
            exchange(t, t->leaving, t->leave[0], visiting, t->come[0]);
            exchange(t, visiting, t->come[0], t->leaving, t->leave[0]);
        }
        CHECK_CUDA(cudaStreamSynchronize(t->stream));
        stopwatch_stop(&watches[w], TRIPS);
    }
    reference_times(&t->n, t->nranks, capacity, watches[0].seconds, watches[1].seconds);
}

#endif
