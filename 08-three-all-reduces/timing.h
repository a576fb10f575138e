/*
 * timing.h: what three_all_reduces does with --time. It uses the program's own functions.
 */
#ifndef TIMING_H
#define TIMING_H

#include "clock.h"

/* Seconds of one sum of `count` elements in each way: the medians of batches. */
static void time_ways(const struct sums *s, size_t count, double seconds[WAYS]) {
    enum { REPEAT = 20, ALIGN = 128 };
    // Each sum of a batch takes a different part of the buffers, as long as there is one,
    // so that no cache helps.
    const size_t stride = (count + ALIGN - 1) / ALIGN * ALIGN;
    const size_t places = s->room / stride > 0 ? s->room / stride : 1;
    // Twice, and the second time counts: a GPU that has been idle is slow at first. A
    // modelled one never is.
    for (int turn = lesson_modelled() ? WAYS : 0; turn < 2 * WAYS; turn++) {
        struct stopwatch watch = {0};
        while (!stopwatch_settled(&watch)) {
            stopwatch_start(&watch);
            for (size_t i = 0; i < REPEAT; i++) {
                const size_t at = i % places * stride;
                queue_sum(s, turn % WAYS, s->sendbuf + at, s->recvbuf + at, count);
            }
            CHECK_CUDA(cudaStreamSynchronize(s->stream));
            stopwatch_stop(&watch, REPEAT);
        }
        seconds[turn % WAYS] = watch.seconds;
    }
}

/* What a new communicator costs, with its first all-reduce. */
static void time_communicator(const struct sums *s) {
    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch)) {
        struct sums own = *s;
        stopwatch_start(&watch);
        CHECK_NCCL(ncclCommSplit(s->comm, 0, s->rank, &own.comm, NULL));
        queue_sum(&own, ONE_CALL, s->sendbuf, s->recvbuf, 1);
        CHECK_CUDA(cudaStreamSynchronize(s->stream));
        stopwatch_stop(&watch, 1);
        CHECK_NCCL(ncclCommDestroy(own.comm));
    }
    if (s->rank == 0)
        printf("ncclCommSplit and the first all_reduce, of 4 B: %.0f µs\n",
               watch.seconds * 1e6);
}

/* Prints a line for each size, with the bytes that a rank sends at most: a rank of a ring
 * sends (N-1)/N of the buffer in each half of an all-reduce. In a chain to the root and
 * back, a rank in the middle sends all of the buffer twice; with two ranks, each sends it
 * once. */
static void time_sizes(const struct sums *s) {
    const size_t n = (size_t)s->nranks;
    lesson_say_whose_times(); // before the table
    if (s->rank == 0)
        printf("%11s%27s%27s%27s\n%11s%15s %12s%15s %12s%15s %12s\n", "D", "all_reduce",
               "reduce, broadcast", "reduce_scatter, all_gather", "(B)", "sends (B)",
               "time (µs)", "sends (B)", "time (µs)", "sends (B)", "time (µs)");
    for (size_t size = 4; size <= s->room; size *= 4) {
        const size_t count = size / n * n; // whole elements for every rank's part
        if (count == 0)
            continue;
        double seconds[WAYS];
        check_ways(s, count, false); // also lets NCCL make its connections
        time_ways(s, count, seconds);
        const double bytes = (double)(count * sizeof(float));
        const double ring = 2.0 * (double)(n - 1) / (double)n * bytes;
        const double chain = (double)(n > 2 ? 2 : n - 1) * bytes;
        if (s->rank == 0)
            printf("%11.0f%15.0f %11.2f%15.0f %11.2f%15.0f %11.2f\n", bytes, ring,
                   seconds[ONE_CALL] * 1e6, chain, seconds[REDUCE_BROADCAST] * 1e6, ring,
                   seconds[SCATTER_GATHER] * 1e6);
        fflush(stdout);
    }
    time_communicator(s);
}

#endif
