// Rank 1 waits in MPI_Barrier before the collective, the others after it. The real
// program hangs.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in MPI_Barrier at @barrier, after 0 operations on the
//     communicator
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank == 1) {
        MPI_Barrier(MPI_COMM_WORLD); // @barrier
    }
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));                                // @sync
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
