/*
 * matrix.h: the tables of peer_to_peer, one row and one column for each GPU.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include "lesson.h"

enum { CELL = 16 };

/* All ranks call it; rank 0 prints. `row` has this rank's texts, one for each rank. */
static inline void print_table(const char *title, char (*row)[CELL], int rank,
                               int nranks) {
    char line[CELL * (nranks + 1)];
    int used = sprintf(line, "GPU %-4d", rank);
    for (int to = 0; to < nranks; to++)
        used += sprintf(line + used, " %9s", row[to]);
    if (rank == 0) {
        printf("%s\nfrom, to", title);
        for (int to = 0; to < nranks; to++)
            printf("%*sGPU %d", to < 10 ? 5 : to < 100 ? 4 : 3, "", to);
        printf("\n");
    }
    lesson_print_in_order(line);
    if (rank == 0)
        printf("\n");
}

#endif
