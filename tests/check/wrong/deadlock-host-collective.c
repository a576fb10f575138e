// Rank 1 takes the host's MPI_Allreduce first and NCCL's second, the others the other way
// round. MPI and NCCL do not know of each other: the real program hangs.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclAllReduce at @nccl for ncclAllReduce(count 4,
//     ncclInt32, ncclSum) at @nccl, operation 1 on communicator 1; rank 1 has not begun
//     this operation
// expect: rank 1 on @host: waits in MPI_Allreduce at @mpi, after 0 operations on the
//     communicator
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

static int sum(int value) {
    int total;
    MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // @mpi
    return total;
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int total = 0;
#ifndef FIXED
    if (rank == 1) {
        total = sum(rank);
    }
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @nccl
    MUST(cudaStreamSynchronize(stream));                                // @sync
#ifndef FIXED
    if (rank != 1)
#endif
    {
        total = sum(rank);
    }
    EXPECT(total, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
