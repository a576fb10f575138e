/*
 * report.h: the options of small_messages, the names of the ways, what it prints, and the
 * check of the sums.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

enum way { FLOOR, ONE_BY_ONE, GROUPED, TOGETHER, GRAPH, WINDOW, WINDOW_GRAPH, WAYS };

/* Reads the command line. */
static inline void report_options(int argc, char **argv, size_t *count, size_t *nvalues) {
    const struct lesson_option options[] = {
        {"-n", "COUNT", "numbers in a value", .number = count, .usual = 2, .least = 1},
        {"--values", "V", "values to sum", .number = nvalues, .usual = 16, .least = 1,
         .most = 1000},
        {0}};
    lesson_options(argc, argv, options);
}

static inline void report_head(void) {
    lesson_say_whose_times();
    if (lesson_self().rank == 0)
        printf("%-24s %10s %12s\n", "way", "us", "us a value");
}

/* Prints the row of one way: the time for all values, and for one of them. */
static inline void report_row(enum way way, double seconds, int nvalues) {
    static const char *const names[WAYS] = {
        [FLOOR] = "the floor: one launch",     [ONE_BY_ONE] = "a call for each value",
        [GROUPED] = "all calls in one group",  [TOGETHER] = "one call for all values",
        [GRAPH] = "that call in a graph",      [WINDOW] = "that call on windows",
        [WINDOW_GRAPH] = "windows and a graph"};
    if (lesson_self().rank == 0)
        printf("%-24s %10.2f %12.2f%s\n", names[way], seconds * 1e6,
               seconds * 1e6 / (way == FLOOR ? 1 : nvalues), way == WAYS - 1 ? "\n" : "");
}

/* Compares every sum, but for the floor, which sums nothing. Number i of rank r was
 * r + 1 + i % 1000. */
static inline void report_check(enum way way, const float *recvbuf, size_t numbers) {
    const int nranks = lesson_self().nranks;
    float *sum = lesson_malloc(numbers * sizeof *sum);
    CHECK_CUDA(cudaMemcpy(sum, recvbuf, numbers * sizeof *sum, cudaMemcpyDeviceToHost));
    for (size_t i = 0; way != FLOOR && i < numbers; i++)
        lesson_expect(i, (double)sum[i],
                      nranks * ((nranks + 1) / 2.0 + (double)(i % 1000)));
    free(sum);
}

#endif
