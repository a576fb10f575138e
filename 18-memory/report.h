/*
 * report.h: the options of memory_kinds, the names of the kinds, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

enum kind { DEVICE, POOL, PINNED, NCCL, REGISTERED, WINDOW, MANAGED, KINDS };

/* Reads the command line. Returns how many kinds are asked for: the last may be left out.
 */
static inline enum kind report_options(int argc, char **argv, size_t *count) {
    bool managed = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "floats in a buffer", .number = count, .least = 1,
         .usual = LESSON_CPU_BUILD ? 1 << 16 : 1 << 24},
        {"--managed", NULL, "managed memory, too", .flag = &managed},
        {0}};
    lesson_options(argc, argv, options);
    return managed ? KINDS : MANAGED;
}

static inline void report_head(void) {
    lesson_say_whose_times();
    if (lesson_self().rank == 0)
        printf("%-26s %14s %16s\n", "buffers", "allocate, us", "all-reduce, GB/s");
}

/* Prints the row of one kind.
 *   allocating, summing  seconds to allocate and release, and for an all-reduce */
static inline void report_row(enum kind kind, double allocating, double summing,
                              size_t bytes) {
    static const char *const names[KINDS] = {[DEVICE] = "cudaMalloc",
                                             [POOL] = "cudaMallocAsync",
                                             [PINNED] = "cudaHostAlloc",
                                             [NCCL] = "ncclMemAlloc",
                                             [REGISTERED] = "ncclMemAlloc, registered",
                                             [WINDOW] = "ncclMemAlloc, window",
                                             [MANAGED] = "cudaMallocManaged"};
    const struct lesson_self self = lesson_self();
    const double factor = 2.0 * (self.nranks - 1) / self.nranks; // bus bandwidth
    if (self.rank == 0)
        printf("%-26s %14.1f %16.1f\n", names[kind], allocating * 1e6,
               factor * (double)bytes / summing / 1e9);
}

/* Checks sums, in any memory: element i of rank r was r + 1 + i % 100. */
static inline void report_check(const float *sums, size_t count) {
    const int nranks = lesson_self().nranks;
    float *host = lesson_malloc(count * sizeof *host);
    CHECK_CUDA(cudaMemcpy(host, sums, count * sizeof *host, cudaMemcpyDefault));
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i],
                      nranks * ((nranks + 1) / 2.0 + (double)(i % 100)));
    free(host);
}

static inline void report_batches(double in_turn, double beside) {
    if (lesson_self().rank == 0)
        printf("\ncopy, then sum: %.3f ms a batch; copy beside the sum: %.3f ms\n\n",
               in_turn * 1e3, beside * 1e3);
}

#endif
