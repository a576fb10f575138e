// The root shares ten numbers out, the first ranks get one more. All ranks ask for the
// larger part: MPI leaves the last place of the others as it was.
//
// expect: NCCL CHECK: mismatch: a rank gives another number of bytes than is taken at
//     collective call 2 on MPI_COMM_WORLD
// expect: rank 0 on @host: MPI_Scatterv at @scatter gives rank @any
// expect: rank @any on @host: MPI_Scatterv at @scatter takes from rank 0
// ranks: 3 4 8
#include "../check.h"

enum { NUMBERS = 10 };

static int share_of(int r) {
    return NUMBERS / nranks + (r < NUMBERS % nranks);
}

int main(void) {
    start(); // whose MPI_Bcast is the first
    int counts[NUMBERS], displs[NUMBERS], all[NUMBERS], mine[NUMBERS] = {0}, begin = 0;
    for (int r = 0; r < nranks; begin += counts[r++]) {
        counts[r] = share_of(r);
        displs[r] = begin;
    }
    for (int i = 0; i < NUMBERS; i++)
        all[i] = i;
    int count = share_of(0);
#ifdef FIXED
    count = share_of(rank);
#endif
    // @scatter
    MPI_Scatterv(all, counts, displs, MPI_INT, mine, count, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(mine[0], displs[rank]);
    // And back, with types that are as long.
    MPI_Allgatherv(mine, counts[rank] * (int)sizeof(int), MPI_BYTE, all, counts, displs,
                   MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, MPI_INT,
                   MPI_COMM_WORLD);
    MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, nranks - 1,
                MPI_COMM_WORLD);
    for (int i = 0; i < NUMBERS; i++)
        EXPECT(all[i], i);
    use_comm(comm);
    finish();
    return 0;
}
