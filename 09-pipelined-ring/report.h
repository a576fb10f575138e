/*
 * report.h: the options of pipelined_ring, and the times that it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

/* Reads the command line.
 *   count   elements of a rank's buffer
 *   pieces  of a chunk, at most `most` */
LESSON_FUNCTION void report_options(int argc, char **argv, size_t *count, size_t *pieces,
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

/* Prints the seconds of the ring and of ncclAllReduce, for buffers of this many bytes. */
LESSON_FUNCTION void report_times(size_t bytes, size_t pieces, double ring, double nccl) {
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
