// The same in the background: parts of MPI_Igatherv overlap, since each has another size
// and the displacements are those of parts of one size.
//
// expect: NCCL CHECK: memory: parts that MPI_Igatherv receives overlap
//
// expect: rank 0 on @host: MPI_Igatherv at @gather
//
// exit: 0
#include "../check.h"

enum { MOST = 8 };

int main(void) {
    start();
    int *counts = calloc((size_t)nranks, sizeof(int)),
        *displs = calloc((size_t)nranks, sizeof(int)), begin = 0;
    MPI_Request request;
    int mine[MOST], *all = calloc((size_t)nranks * MOST, sizeof(int));
    for (int i = 0; i < MOST; i++)
        mine[i] = rank;
    for (int r = 0; r < nranks; r++) {
        counts[r] = r == 0 ? MOST : MOST / 2;
        displs[r] = r * (MOST / 2);
#ifdef FIXED
        displs[r] = begin;
#endif
        begin += counts[r];
    }
    // @gather
    MPI_Igatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, 0,
                 MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#ifdef FIXED
    EXPECT(all[begin - 1], rank == 0 ? nranks - 1 : 0);
#endif
    free(all);
    free(displs);
    free(counts);
    finish();
    return 0;
}
