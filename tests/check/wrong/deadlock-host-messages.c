// All ranks receive before they send. MPI_Recv returns when the message is there
// (MPI 4.1, 3.2.4), and no rank gets to its MPI_Send. The program hangs.
//
// rank: all
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
//
// expect: rank 0 on @host: waits in MPI_Recv at @recv
//
// expect: rank 1 on @host: waits in MPI_Recv at @recv
//
// expect: The cycle: rank
#include "../check.h"

int main(void) {
    start();
    int mine = rank, got = -1, next = (rank + 1) % nranks,
        before = (rank + nranks - 1) % nranks;
#ifdef FIXED
    MPI_Sendrecv(&mine, 1, MPI_INT, next, 7, &got, 1, MPI_INT, before, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT(got, before);
#else
    // @recv
    MPI_Recv(&got, 1, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&mine, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
#endif
    finish();
    return 0;
}
