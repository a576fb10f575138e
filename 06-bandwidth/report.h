/*
 * report.h: the options of bandwidth, and the rows that it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "clock.h"

struct report {
    size_t min, max, factor; // sizes in bytes, and from one to the next
    bool graph, registered;
    size_t room; // bytes of a buffer: the largest size of which two fit into memory
    int nranks;
    FILE *csv; // rank 0, if asked for
};

/* Reads the command line. names[i] is the name of an operation; chosen[i] is set if it is
 * asked for. End with report_close. */
static inline struct report report_options(int argc, char **argv,
                                           const char *const *names, bool *chosen) {
    struct report r = {.nranks = lesson_self().nranks};
    const char *csv = NULL;
    const struct lesson_option options[] = {
        {"--op", "NAMES", "only these, separated by commas:", .names = names,
         .chosen = chosen},
        {"--min", "BYTES", "smallest size; the number may end in K, M or G",
         .number = &r.min, .usual = 8, .least = 4},
        {"--max", "BYTES", "largest size", .number = &r.max,
         .usual = LESSON_CPU_BUILD ? 64 << 10 : 1 << 30, .least = 4},
        {"--factor", "F", "from one size to the next", .number = &r.factor, .usual = 2,
         .least = 2},
        {"--csv", "FILE", "also writes the numbers to FILE; make plot draws them",
         .text = &csv},
        {"--register", NULL, "registers the buffers with NCCL", .flag = &r.registered},
        {"--graph", NULL, "launches each batch as a CUDA graph", .flag = &r.graph},
        {0}};
    lesson_options(argc, argv, options);
    if (r.min > r.max)
        lesson_misused(argv[0], options, "--min is larger than --max");
    if (r.registered && NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 1))
        lesson_misused(argv[0], options, "--register needs NCCL 2.19 or newer");
    bool any = false;
    for (int i = 0; names[i]; i++)
        any |= chosen[i];
    for (int i = 0; names[i] && !any; i++)
        chosen[i] = true;
    if (csv && lesson_self().rank == 0) {
        r.csv = fopen(csv, "w");
        if (!r.csv)
            lesson_fail("cannot write %s: %s", csv, strerror(errno));
        fprintf(
            r.csv,
            "operation,mode,ranks,bytes,time_us,algbw_GB_per_s,busbw_GB_per_s,repeats\n");
    }
    return r;
}

/* The next size; 0 after the last one, and after the first that does not fit. */
static inline size_t report_next(const struct report *r, size_t bytes) {
    return bytes > r->max / r->factor || bytes > r->room ? 0 : bytes * r->factor;
}

/* Sets r->room, the same on every rank. */
static inline void report_fit(struct report *r) {
    size_t available, total;
    CHECK_CUDA(cudaMemGetInfo(&available, &total));
    // A tenth is left to NCCL, which allocates its own buffers when it first needs them.
    double room = (double)available * 0.45;
    if (room > lesson_host_memory() / 2)
        room = lesson_host_memory() / 2;
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &room, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD));
    if ((double)r->min > room)
        lesson_fail("no size fits: --min is %zu bytes, and there is room for %.0f\n"
                    "  Hint: choose a smaller --min.",
                    r->min, room);
    for (size_t size = r->min; size && (double)size <= room; size = report_next(r, size))
        r->room = size;
}

/* Rank 0 prints. */
static inline void report_head(void) {
    lesson_say_whose_times();
    if (lesson_self().rank == 0)
        printf("%-15s %11s %12s %9s %9s\n%-15s %11s %13s %9s %9s\n", "operation", "size",
               "time", "algbw", "busbw", "", "(B)", "(µs)", "(GB/s)", "(GB/s)");
}

/* Whether a size can be measured; if not, rank 0 says why.
 *   asked  the size;  bytes  the same, made divisible by the number of ranks */
static inline bool report_possible(const struct report *r, const char *operation,
                                   size_t asked, size_t bytes) {
    const bool speak = lesson_self().rank == 0;
    if (bytes == 0 && speak)
        printf("%-15s %11zu  left out: less than one element for each of %d ranks\n",
               operation, asked, r->nranks);
    else if (asked > r->room && speak)
        printf(
            "%-15s %11zu  left out, like all larger sizes: two such buffers do not fit into memory\n",
            operation, asked);
    return bytes > 0 && asked <= r->room;
}

/* Prints one row, and writes it to the CSV file. Bandwidths are in bytes per second.
 *   repeats  how many operations were timed */
static inline void report_row(const struct report *r, const char *operation, size_t bytes,
                              double seconds, double algbw, double busbw, int repeats) {
    const char *modes[] = {"plain", "graph", "register", "register+graph"};
    if (lesson_self().rank != 0)
        return;
    printf("%-15s %11zu %12.2f %9.2f %9.2f\n", operation, bytes, seconds * 1e6,
           algbw / 1e9, busbw / 1e9);
    fflush(stdout);
    if (r->csv) {
        fprintf(r->csv, "%s,%s,%d,%zu,%.4f,%.6g,%.6g,%d\n", operation,
                modes[2 * r->registered + r->graph], r->nranks, bytes, seconds * 1e6,
                algbw / 1e9, busbw / 1e9, repeats);
        fflush(r->csv);
    }
}

static inline void report_close(struct report *r) {
    if (r->csv && fclose(r->csv) != 0)
        lesson_fail("cannot write the CSV file: %s", strerror(errno));
}

#endif
