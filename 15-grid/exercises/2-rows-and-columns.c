// 15.2 Rows and columns (complete)
// make exercise N=15.2

/*
 * Arrange all ranks in a grid with this number of columns, row by row: ranks 0 to columns
 * - 1 are row 0, the next ones row 1. Make two communicators for this rank: *in_row with
 * all ranks of its row, *in_column with all of its column. Both are ordered like the
 * ranks.
 */
#include "lesson.h"

void make_grid(ncclComm_t comm, int rank, int columns, ncclComm_t *in_row,
               ncclComm_t *in_column) {
    // Your two calls.
}
