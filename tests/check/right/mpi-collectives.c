// MPI's collective calls with all the liberties that the standard gives: arguments that
// are not significant on this rank, MPI_IN_PLACE on the root alone, as many bytes of
// another type, a reduction of the program's own, a part of another size for each rank,
// calls that fail on one rank and are made again, communicators that are freed and made
// anew, and one whose groups are none of the others' business (MPI 4.1, chapter 6).
#include "../check.h"

static void largest(void *in, void *inout, int *n, MPI_Datatype *type) {
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *n; i++)
        b[i] = a[i] > b[i] ? a[i] : b[i];
}

int main(void) {
    start();
    int last = nranks - 1, x = rank, y = -1;
    int *all = malloc((size_t)nranks * sizeof *all);
    // On the root in place, and what the others give for a receive is not looked at.
    if (rank == last) {
        all[rank] = rank;
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, last,
                   MPI_COMM_WORLD);
        EXPECT(all[0], 0);
        MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, last,
                    MPI_COMM_WORLD);
    } else {
        MPI_Gather(&x, sizeof x, MPI_BYTE, NULL, 99, MPI_DATATYPE_NULL, last,
                   MPI_COMM_WORLD);
        MPI_Scatter(NULL, 77, MPI_DATATYPE_NULL, &y, sizeof y, MPI_BYTE, last,
                    MPI_COMM_WORLD);
        EXPECT(y, rank);
    }
    // As many bytes, as one element or as several.
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int two[2] = {rank, rank};
    MPI_Bcast(two, rank == 0 ? 1 : 2, rank == 0 ? pair : MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(two[1], 0);
    MPI_Type_free(&pair);
    // A part of another size for each rank.
    int *counts = malloc((size_t)nranks * sizeof *counts),
        *at = calloc((size_t)nranks, 4);
    for (int r = 0; r < nranks; r++) {
        counts[r] = r;
        at[r] = r * (r - 1) / 2;
    }
    int *parts = calloc((size_t)(nranks * nranks) + 1, sizeof *parts);
    MPI_Allgatherv(all, 0 * rank, MPI_INT, parts, calloc((size_t)nranks, 4), at, MPI_INT,
                   MPI_COMM_WORLD);
    MPI_Gatherv(parts, rank, MPI_INT, parts + nranks, counts, at, MPI_INT, 0,
                MPI_COMM_WORLD);
    // Parts in another order; one within the holes of another; one of no elements
    // anywhere; and in place the own one is not written.
    int *wide = calloc((size_t)(2 * nranks) + 2, sizeof *wide), two_of[2] = {rank, rank};
    for (int r = 0; r < nranks; r++) {
        counts[r] = 2;
        at[r] = 2 * (last - r);
    }
    MPI_Allgatherv(two_of, 2, MPI_INT, wide, counts, at, MPI_INT, MPI_COMM_WORLD);
    EXPECT(wide[0], last);
    MPI_Datatype apart, spread;
    MPI_Type_vector(2, 1, nranks, MPI_INT, &apart);
    MPI_Type_create_resized(apart, 0, sizeof(int), &spread);
    MPI_Type_commit(&spread);
    for (int r = 0; r < nranks; r++) {
        counts[r] = 1;
        at[r] = r;
    }
    MPI_Gatherv(two_of, 2, MPI_INT, wide, counts, at, spread, 0, MPI_COMM_WORLD);
    EXPECT(rank == 0 ? wide[nranks + last] : last, last);
    MPI_Type_free(&apart);
    MPI_Type_free(&spread);
    counts[last] = 0;
    at[last] = 0;
    MPI_Allgatherv(two_of, rank < last, MPI_INT, wide, counts, at, MPI_INT,
                   MPI_COMM_WORLD);
    at[last] = last;
    counts[last] = 1;
    at[0] = rank == 0 ? 1 : 0;
    MPI_Gatherv(rank == 0 ? MPI_IN_PLACE : two_of, 1, MPI_INT, wide, counts, at, MPI_INT,
                0, MPI_COMM_WORLD);
    free(wide);
    // Reductions.
    MPI_Op own;
    MPI_Op_create(largest, 1, &own);
    MPI_Allreduce(&x, &y, 1, MPI_INT, own, MPI_COMM_WORLD);
    EXPECT(y, last);
    if (rank == 0)
        MPI_Reduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce(&x, NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Op_free(&own);
    // A call that fails on one rank: no rank has made it then.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == last && MPI_Bcast(&x, 1, MPI_INT, nranks, MPI_COMM_WORLD) == MPI_SUCCESS)
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    // What goes on at the same time keeps its order.
    MPI_Request requests[2];
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&y, 1, MPI_INT, last, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    // Communicators: each half has its own order, and one rank has none.
    for (int round = 0; round < 3; round++) {
        MPI_Comm some, copy;
        MPI_Comm_split(MPI_COMM_WORLD, rank == last ? MPI_UNDEFINED : rank % 2, -rank,
                       &some);
        if (some == MPI_COMM_NULL)
            continue;
        if (rank % 2)
            MPI_Barrier(some);
        MPI_Comm_dup(some, &copy);
        MPI_Bcast(&x, 1, MPI_INT, 0, rank % 2 ? some : copy);
        MPI_Comm_free(&some);
        MPI_Comm_free(&copy);
    }
    use_comm(comm);
    free(all);
    finish();
    return 0;
}
