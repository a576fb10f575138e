/*
 * report.h: the options of overlap.
 */
#ifndef REPORT_H
#define REPORT_H

#include "network.h"

struct asked {
    size_t bucket, ctas; // --bucket, --ctas
    bool timed;          // --time
};

/* Reads the command line; the network's options go into `n`. */
static inline struct asked report_options(int argc, char **argv, struct network *n) {
    struct asked asked = {0};
    const struct lesson_option options[] = {
        {"--bucket", "BYTES",
         "of gradients in one call (0: one layer's; all: the whole model's)",
         .number = &asked.bucket, .all = true},
        {"--ctas", "N", "at most this many multiprocessors for NCCL (0: NCCL decides)",
         .number = &asked.ctas, .most = 64},
        {"--time", NULL, "how long a step takes, and how much communication is hidden",
         .flag = &asked.timed},
        {0}};
    network_options(argc, argv, n, lesson_self().nranks, options);
    return asked;
}

static inline void report_times(double compute, double reduce, double both) {
    if (lesson_self().rank == 0)
        printf("computing only   %9.3f ms a step\nall-reduce only  %9.3f ms\n"
               "both             %9.3f ms, %.3f of computing only\n"
               "hidden           %9.2f of the shorter of the two\n",
               compute * 1e3, reduce * 1e3, both * 1e3, both / compute,
               (compute + reduce - both) / fmin(compute, reduce));
}

#endif
