/*
 * report.h: the options of pipelined_ring, the numbers that it adds, and the times that
 * it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

/* Reads the command line.
 *   count   elements of a rank's buffer
 *   pieces  of a chunk, at most `most` */
static inline void report_options(int argc, char **argv, size_t *count, size_t *pieces,
                                  size_t most, bool *timed) {
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements per rank, at least 1", .number = count,
         .usual = (size_t)lesson_self().nranks * 4, .least = 1},
        {"--pieces", "P", "how many pieces a chunk is cut into", .number = pieces,
         .usual = 4, .least = 1, .most = most},
        {"--time", NULL, "no tables, but the times of the ring and of ncclAllReduce",
         .flag = timed},
        {0}};
    lesson_options(argc, argv, options);
}

/* Element i of a rank's buffer: ones on rank 0, tens on rank 1, … and ones again on rank
 * 5, small enough for floats to hold the sums exactly. */
static inline float value(int rank, size_t i) {
    const float place[] = {1, 10, 100, 1000, 10000};
    return place[rank % 5] * (float)(1 + i % 9);
}

/* Element i of the sum. */
static inline double sum_of_all(int nranks, size_t i) {
    double all = 0;
    for (int rank = 0; rank < nranks; rank++)
        all += (double)value(rank, i);
    return all;
}

/* Copies the sums of `count` elements from the GPU to `host`, and compares each. Shows
 * them below `title`, unless that is NULL. */
static inline void check(const char *title, const float *sum, float *host, size_t count) {
    const int nranks = lesson_self().nranks;
    CHECK_CUDA(cudaMemcpy(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i], sum_of_all(nranks, i));
    if (title)
        lesson_table(title, host, count, ncclFloat32);
}

/* Prints the seconds of the ring and of ncclAllReduce, for buffers of this many bytes. */
static inline void report_times(size_t bytes, size_t pieces, double ring, double nccl) {
    const struct lesson_self self = lesson_self();
    const double crossing = 2.0 * (self.nranks - 1) / self.nranks * (double)bytes;
    char name[32];
    if (self.rank != 0)
        return;
    snprintf(name, sizeof name, "ring, in %zu piece%s", pieces, pieces == 1 ? "" : "s");
    printf("%d rank%s, D = %zu bytes\n", self.nranks, self.nranks == 1 ? "" : "s", bytes);
    printf("%-18s %.3f ms, bus bandwidth %.2f GB/s\n", name, ring * 1e3,
           crossing / ring / 1e9);
    printf("ncclAllReduce      %.3f ms, bus bandwidth %.2f GB/s\n", nccl * 1e3,
           crossing / nccl / 1e9);
    printf("ratio              %.3f of ncclAllReduce's bandwidth\n", nccl / ring);
}

#endif
