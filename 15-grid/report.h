/*
 * report.h: the options of grid, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "network.h"

struct asked {
    int rows, columns;
    bool apart, timed; // --apart, --time
};

/* Reads the command line; the network's options go into `whole`. */
static inline struct asked report_options(int argc, char **argv, struct network *whole) {
    const size_t nranks = (size_t)lesson_self().nranks;
    struct asked asked = {0};
    size_t columns = 1;
    // As many columns as rows, or more.
    while (columns * columns < nranks || nranks % columns != 0)
        columns++;
    const struct lesson_option options[] = {
        {"--columns", "C", "ranks in a row", .number = &columns, .usual = columns,
         .least = 1, .most = nranks},
        {"--apart", NULL, "the ranks of a column are consecutive, not those of a row",
         .flag = &asked.apart},
        {"--time", NULL, "how long a step takes, with and without communication",
         .flag = &asked.timed},
        {0}};
    whole->batch = (nranks + 167) / nranks * nranks;
    network_options(argc, argv, whole, 1, options);
    const size_t rows = nranks / columns;
    if (nranks % columns != 0)
        network_misused(argv[0], "--columns %zu does not divide %zu ranks", columns,
                        nranks);
    if (whole->batch % rows != 0)
        network_misused(argv[0], "--batch %zu does not divide among %zu rows",
                        whole->batch, rows);
    if (whole->layers % 2 != 0)
        network_misused(argv[0], "--layers %zu is odd: they come in pairs",
                        whole->layers);
    if (whole->width < columns)
        network_misused(argv[0], "--width %zu is less than one for each of %zu columns",
                        whole->width, columns);
    asked.rows = (int)rows;
    asked.columns = (int)columns;
    return asked;
}

/* Prints where this rank is, and what it has.
 *   share         samples of a step that are its row's
 *   first, slice  its column's slice of the width */
static inline void report_place(const struct asked *asked, int row, int column,
                                size_t share, size_t first, size_t slice) {
    char line[256];
    snprintf(
        line, sizeof line,
        "rank %d: row %d of %d, column %d of %d; samples %zu to %zu, slice %zu to %zu",
        lesson_self().rank, row, asked->rows, column, asked->columns, (size_t)row * share,
        ((size_t)row + 1) * share - 1, first, first + slice - 1);
    lesson_print_in_order(line);
}

/* Prints the bytes that are all-reduced in a step: counted, and by formula. */
static inline void report_bytes(const struct network *n, size_t share, size_t slice,
                                size_t in_row, size_t in_column) {
    if (lesson_self().rank == 0)
        printf("in a row     %zu bytes a step, counted; (L-1) x B/rows x W x 4 = %zu\n"
               "in a column  %zu bytes a step, counted; L x W x slice x 4 = %zu\n",
               in_row, (n->layers - 1) * share * n->width * 4, in_column,
               n->layers * n->width * slice * 4);
}

/* Prints the seconds of a step without communication, with that of the rows, and with
 * all. */
static inline void report_times(double computing, double rows, double all) {
    if (lesson_self().rank == 0)
        printf("computing only      %9.3f ms a step\nwith the rows       %9.3f ms\n"
               "with the columns    %9.3f ms\n",
               computing * 1e3, rows * 1e3, all * 1e3);
}

/* Ends the job unless the ranks of each column have the same weights, bit for bit. */
static inline void report_columns(int row, int column, const float *host, size_t count) {
    MPI_Comm all;
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, column, row, &all));
    network_check_copies(host, count, "after the last step", all);
    CHECK_MPI(MPI_Comm_free(&all));
}

#endif
