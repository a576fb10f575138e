// Rank 1 finds nothing to do and leaves with exit(0), without MPI_Finalize. The real NCCL
// waits on the others, until mpirun ends them.
// rank: 1
// alone: exit code 1
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: has ended without MPI_Finalize, after 0 operations on the
//     communicator
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank == 1) {
        exit(0);
    }
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));                                // @sync
    MUST(cudaFree(buf));
    finish();
    return 0;
}
