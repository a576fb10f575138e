// Rank 1 waits in MPI_Recv for a message that rank 0 sends only after the collective,
// which needs rank 1. The real program hangs.
// rank: 0
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in MPI_Recv at @recv, after 0 operations on the
//     communicator
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int token = 0;
#ifdef FIXED
    if (rank == 0) {
        MPI_Send(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    }
#endif
    if (rank == 1) {
        MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // @recv
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));                                // @sync
#ifndef FIXED
    if (rank == 0) {
        MPI_Send(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    }
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
