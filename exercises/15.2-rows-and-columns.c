//: kind complete
//: title Rows and columns
//: trains ncclCommSplit
//: ranks 6 4 | 1 2 3 7 8
//: calls ncclCommSplit=2
//: starter has not been made
//: wrong exchanged s/rank \/ columns, rank % columns, in_row/rank % columns, rank \/ columns, in_row/: rows: 1, columns: 6 … in_row has size 1, expected 6
//: wrong row-twice s/rank % columns, rank \/ columns, in_column/rank \/ columns, rank % columns, in_column/: in_column has size
//: wrong all-in-one s/comm, rank \/ columns, rank % columns/comm, 0, rank/: in_row has size
//: wrong backwards s/rank % columns, in_row/-rank, in_row/: this rank should be number 0 of in_row, but is 5
//: learned Every rank splits twice: by its row and by its column. The color says who is together, the key in which order.
//: why Ranks of a row have the same rank / columns, those of a column the same rank % columns.
//: hint Draw the grid: with three columns, ranks 0, 1 and 2 are row 0. What do the ranks of a row have in common?
//: hint ncclCommSplit takes comm, color, key, the new communicator and NULL. Color: row or column.
//: hint For the rows: color rank / columns, key rank % columns. For the columns exchange them.
//: file

/*
 * Arrange all ranks in a grid with this number of columns, row by row: ranks 0 to columns
 * - 1 are row 0, the next ones row 1. Make two communicators for this rank: *in_row with
 * all ranks of its row, *in_column with all of its column. Both are ordered like the
 * ranks.
 */
#include "lesson.h"

void make_grid(ncclComm_t comm, int rank, int columns, ncclComm_t *in_row,
               ncclComm_t *in_column) {
    //: starter
    // Your two calls.
    //: solution
    CHECK_NCCL(ncclCommSplit(comm, rank / columns, rank % columns, in_row, NULL));
    CHECK_NCCL(ncclCommSplit(comm, rank % columns, rank / columns, in_column, NULL));
    //: end
}
//: check
void make_grid(ncclComm_t comm, int rank, int columns, ncclComm_t *in_row,
               ncclComm_t *in_column);

static bool check_group(const char *name, ncclComm_t group, int first, int step, int size,
                        int number) {
    int has, mine;
    if (!check_that(group != NULL, "%s has not been made", name))
        return false;
    CHECK_NCCL(ncclCommCount(group, &has));
    if (!check_that(has == size, "%s has size %d, expected %d", name, has, size))
        return false;
    int *one = check_device(sizeof *one), *all = check_device(size * sizeof *all);
    int *host = check_host(size * sizeof *host);
    check_put(one, &check_rank, sizeof *one);
    CHECK_NCCL(ncclAllGather(one, all, 1, ncclInt32, group, check_stream));
    check_get(host, all, size * sizeof *host);
    bool member[64] = {false};
    for (int i = 0; i < size; i++)
        member[host[i]] = true;
    for (int i = 0; i < size; i++)
        check_that(member[first + i * step], "rank %d is missing in %s", first + i * step,
                   name);
    CHECK_NCCL(ncclCommUserRank(group, &mine));
    return check_that(mine == number, "this rank should be number %d of %s, but is %d",
                      number, name, mine);
}

void check(void) {
    for (int columns = check_nranks; columns > 0; columns--) {
        if (check_nranks % columns != 0)
            continue;
        check_case("rows: %d, columns: %d", check_nranks / columns, columns);
        ncclComm_t in_row = NULL, in_column = NULL;
        make_grid(check_comm, check_rank, columns, &in_row, &in_column);
        const int row = check_rank / columns, column = check_rank % columns;
        check_group("in_row", in_row, row * columns, 1, columns, column);
        check_group("in_column", in_column, column, columns, check_nranks / columns, row);
        if (in_column)
            CHECK_NCCL(ncclCommDestroy(in_column));
        if (in_row)
            CHECK_NCCL(ncclCommDestroy(in_row));
    }
}
