/*
 * trips.h: how long tokens are on their way, with experts' own functions. What is timed
 * is what its forward pass does, without the computing.
 */
#ifndef TRIPS_H
#define TRIPS_H

/* How long a layer's tokens take there and back: their counts first, or in blocks of one
 * size that hold the largest. In turns, so that what happens to the machine meanwhile
 * happens to both. */
static void measure(struct training *t) {
    enum { TRIPS = 10 };
    struct stopwatch watches[2] = {{0}};
    const struct road *road = &t->roads[0];
    size_t capacity = t->capacity;
    t->capacity = 0;
    give_places(t, 0, 0);
    if (capacity == 0) // so much that nothing is dropped
        capacity = reference_largest(road->leave, t->nranks);
    for (int w = 0; !stopwatch_settled(&watches[1]); w = !w) {
        t->capacity = w == 0 ? 0 : capacity;
        give_places(t, 0, 0);
        stopwatch_start(&watches[w]);
        for (int i = 0; i < TRIPS; i++) {
            exchange_counts(t, 0);
            exchange(t, t->leaving, road->leave, t->visiting[0], road->come);
            exchange(t, t->visiting[0], road->come, t->leaving, road->leave);
        }
        CHECK_CUDA(cudaStreamSynchronize(t->stream));
        stopwatch_stop(&watches[w], TRIPS);
    }
    reference_times(&t->n, t->nranks, capacity, watches[0].seconds, watches[1].seconds);
}

#endif
