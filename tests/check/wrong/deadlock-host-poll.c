// Rank 1 asks again and again whether a message has come, which rank 0 sends only after
// the collective. Asking is not waiting, so only the deadline can tell. The real program
// runs for ever.
// rank: 0
// alone: hangs
// expect: NCCL CHECK:
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: ...MPI_Iprobe at @probe
// timeout: 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int token = 0, there = 0;
#ifdef FIXED
    if (rank == 0) {
        MPI_Send(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    }
#endif
    if (rank == 1) {
        while (!there) {
            MPI_Iprobe(0, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE); // @probe
        }
        MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
