// Both ranks receive before they send. MPI_Recv returns when the message is there
// (MPI 4.1, 3.2.4), and neither rank gets to its MPI_Send. The program hangs.
//
// expect: NCCL CHECK: deadlock: ranks wait for one another
//
// expect: rank 0 on @host: waits in MPI_Recv at @recv
//
// expect: rank 1 on @host: waits in MPI_Recv at @recv
//
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    int mine = rank, other = -1, peer = 1 - rank;
#ifdef FIXED
    MPI_Sendrecv(&mine, 1, MPI_INT, peer, 7, &other, 1, MPI_INT, peer, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT(other, peer);
#else
    // @recv
    MPI_Recv(&other, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&mine, 1, MPI_INT, peer, 7, MPI_COMM_WORLD);
#endif
    finish();
    return 0;
}
