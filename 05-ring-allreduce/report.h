/*
 * report.h: the options of ring_allreduce, the numbers that it adds, and its tables.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

/* Reads the command line.
 *   count   elements of a rank's buffer
 *   tables  whether to show the sums after every step */
static inline void report_options(int argc, char **argv, size_t *count, bool *tables) {
    bool no_tables = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements per rank, at least 1", .number = count,
         .usual = (size_t)lesson_self().nranks, .least = 1},
        {"--no-tables", NULL, "prints only the bytes that each rank sends",
         .flag = &no_tables},
        {0}};
    lesson_options(argc, argv, options);
    *tables = !no_tables;
}

/* Element i of what `rank` brings: ones from rank 0, tens from rank 1, … and ones again
 * from rank 5. These are whole numbers, and up to 800 ranks their sum stays below 2^24,
 * so a float is exact, in whatever order the ring adds. */
static inline float value(int rank, size_t i) {
    const float place[] = {1, 10, 100, 1000, 10000};
    return place[rank % 5] * (float)(1 + i % 9);
}

/* Shows `sum`, which is on the GPU and has `count` elements, after a step. */
static inline void show_step(int step, const float *sum, size_t count) {
    const int nranks = lesson_self().nranks, steps = 2 * (nranks - 1);
    char title[64];
    float *host = lesson_malloc(count * sizeof(float));
    CHECK_CUDA(cudaMemcpy(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost));
    snprintf(title, sizeof title, "After step %d of %d, %s:", step + 1, steps,
             step < nranks - 1 ? "added up" : "passed on");
    lesson_table(title, host, count, ncclFloat32);
    free(host);
}

/* Copies `sum` from the GPU to `host`, and compares every element. */
static inline void check(const float *sum, float *host, size_t count) {
    float factor = 0;
    for (int rank = 0; rank < lesson_self().nranks; rank++)
        factor += value(rank, 0);
    CHECK_CUDA(cudaMemcpy(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i], (double)(factor * value(0, i)));
}

/* Prints the bytes that each rank has sent around the ring, beside the formula.
 *   bytes  of a rank's buffer */
static inline void report_sent(size_t sent, size_t bytes) {
    const struct lesson_self self = lesson_self();
    char line[128];
    snprintf(line, sizeof line, "GPU %d sent %zu bytes; 2(N-1)/N x D = %.1f", self.rank,
             sent, 2.0 * (self.nranks - 1) / self.nranks * (double)bytes);
    lesson_print_in_order(line);
}

#endif
