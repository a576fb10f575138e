/*
 * report.h: the lines of three_all_reduces --time.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

static inline void report_head(void) {
    lesson_say_whose_times();
    if (lesson_self().rank == 0)
        printf("%11s%27s%27s%27s\n%11s%15s %12s%15s %12s%15s %12s\n", "D", "all_reduce",
               "reduce, broadcast", "reduce_scatter, all_gather", "(B)", "sends (B)",
               "time (µs)", "sends (B)", "time (µs)", "sends (B)", "time (µs)");
}

/* One size: the time of each way, in the order of the head, and the bytes that a rank
 * sends at most. A rank of a ring sends (N-1)/N of the buffer in each half of an
 * all-reduce. In a chain to the root and back, a rank in the middle sends all of the
 * buffer twice; with two ranks, each sends it once. */
static inline void report_row(size_t count, const double seconds[3]) {
    const int n = lesson_self().nranks;
    const double bytes = (double)(count * sizeof(float));
    const double ring = 2.0 * (n - 1) / n * bytes;
    const double chain = (n > 2 ? 2 : n - 1) * bytes;
    if (lesson_self().rank == 0)
        printf("%11.0f%15.0f %11.2f%15.0f %11.2f%15.0f %11.2f\n", bytes, ring,
               seconds[0] * 1e6, chain, seconds[1] * 1e6, ring, seconds[2] * 1e6);
    fflush(stdout);
}

#endif
