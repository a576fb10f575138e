/*
 * report.h: the options of one_sided, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "older.h"

/* An older NCCL has none of these. The program compiles with it all the same, and
 * report_options ends it. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
typedef struct {
    int opCnt, peer;
} ncclWaitSignalDesc_t;
static inline ncclResult_t report_missing(int first, ...) {
    (void)first;
    return ncclInvalidUsage;
}
#define ncclPutSignal(...) report_missing(0, __VA_ARGS__)
#define ncclSignal(...) report_missing(0, __VA_ARGS__)
#define ncclWaitSignal(...) report_missing(0, __VA_ARGS__)
#endif

/* Reads the command line. */
static inline void report_options(int argc, char **argv, size_t *count, size_t *items) {
    const struct lesson_option options[] = {
        {"-n", "COUNT", "floats that a rank gives", .number = count, .usual = 1024,
         .least = 1},
        {"--items", "N", "items that pass the queue", .number = items, .usual = 10},
        {0}};
    lesson_options(argc, argv, options);
    if (NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2))
        return;
    if (lesson_self().rank == 0)
        fprintf(stderr, "one_sided needs NCCL 2.29 or newer, and was built with %d.%d\n",
                NCCL_MAJOR, NCCL_MINOR);
    lesson_leave(1);
}

static inline void report_exchange(const char *name, double seconds) {
    if (lesson_self().rank == 0)
        printf("%-18s %10.2f us an exchange\n", name, seconds * 1e6);
}

static inline void report_queue(size_t items) {
    if (lesson_self().rank == 0)
        printf("%-18s %10zu items\n", "queue", items);
}

#endif
