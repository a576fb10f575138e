// Rank 0 waits for a message of whoever is done first, and all others for rank 0, in a
// collective. The real NCCL hangs.
// rank: 0
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in MPI_Recv at @recv
// expect: rank 1 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 0 has
//     not begun this operation
#include "../check.h"

static void hear_of_one(void) {
    int who;
    if (rank == 0)
        MPI_Recv(&who, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, // @recv
                 MPI_STATUS_IGNORE);
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    hear_of_one();
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));                                // @sync
    if (rank == nranks - 1)
        MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
#ifdef FIXED
    hear_of_one();
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
