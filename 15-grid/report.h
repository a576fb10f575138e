/*
 * report.h: what grid is asked for, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "network.h"

struct asked {
    int rows, columns;
    bool apart, timed; // --apart, --time
};

/* Reads the command line; the network's part of it goes into `whole`. */
LESSON_FUNCTION struct asked report_options(int argc, char **argv,
                                            struct network *whole) {
    const size_t nranks = (size_t)lesson_self().nranks;
    struct asked asked = {0};
    size_t columns = 1;
    // As many columns as rows, or more.
    while (columns * columns < nranks || nranks % columns != 0)
        columns++;
    const struct lesson_option options[] = {
        {"--columns", "C", "ranks in a row", .number = &columns, .usual = columns,
         .least = 1, .most = nranks},
        {"--apart", NULL, "a column's ranks follow one another, not a row's",
         .flag = &asked.apart},
        {"--time", NULL, "how long a step takes, and what of it is communication",
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

/* Where this rank is: its row and column, and what it has.
 *   n      its part of the network: the slice that begins at `first`
 *   share  samples of its row */
LESSON_FUNCTION void report_place(const struct asked *asked, int row, int column,
                                  const struct network *n, size_t share, size_t first) {
    char line[256];
    snprintf(
        line, sizeof line,
        "rank %d: row %d of %d, column %d of %d; samples %zu to %zu, slice %zu to %zu",
        lesson_self().rank, row, asked->rows, column, asked->columns, (size_t)row * share,
        ((size_t)row + 1) * share - 1, first, first + n->slice - 1);
    lesson_print_in_order(line);
}

/* The bytes that are all-reduced in a step, counted, beside the formulas. */
LESSON_FUNCTION void report_bytes(const struct network *n, size_t share, size_t in_row,
                                  size_t in_column) {
    if (lesson_self().rank == 0)
        printf("in a row     %zu bytes a step, counted; (L-1) x B/rows x W x 4 = %zu\n"
               "in a column  %zu bytes a step, counted; L x W x slice x 4 = %zu\n",
               in_row, (n->layers - 1) * share * n->width * 4, in_column,
               n->layers * n->width * n->slice * 4);
}

/* Seconds of a step without communication, with that of the rows, with all. */
LESSON_FUNCTION void report_times(double computing, double rows, double all) {
    if (lesson_self().rank == 0)
        printf("computing only      %9.3f ms a step\nwith the rows       %9.3f ms\n"
               "with the columns    %9.3f ms\n",
               computing * 1e3, rows * 1e3, all * 1e3);
}

#endif
