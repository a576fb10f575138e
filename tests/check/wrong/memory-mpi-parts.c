// Each rank has a part of another size, and the displacements are still those of parts of
// one size: they overlap, and MPI leaves there what the one sent or the other. And once
// more in the background.
//
// expect: NCCL CHECK: memory: parts that MPI_Gatherv receives overlap
//
// expect: rank 0 on @host: MPI_Gatherv at @gather
//
// expect: Hint: counts and displs are both in elements of recvtype
//
// expect: NCCL CHECK: memory: parts that MPI_Igatherv receives overlap
//
// expect: rank 0 on @host: MPI_Igatherv at @later
//
// exit: 0
#include "../check.h"

enum { MOST = 8 };

int main(void) {
    start();
    int *counts = calloc((size_t)nranks, sizeof(int)),
        *displs = calloc((size_t)nranks, sizeof(int)), begin = 0;
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
    MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, 0,
                MPI_COMM_WORLD);
#ifdef FIXED
    EXPECT(all[begin - 1], rank == 0 ? nranks - 1 : 0);
#endif
    MPI_Request request;
    memset(all, 0, (size_t)nranks * MOST * sizeof(int));
    // @later
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
