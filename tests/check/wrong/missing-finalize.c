// Rank 1 has done its last step and is in MPI_Finalize, while the others start one more.
// The real NCCL waits for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 3
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in cudaStreamSynchronize at @sync for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, operation 3 on
//     communicator 1; rank 1 has not begun this operation
// expect: rank 1 on @host: is in MPI_Finalize at @finalize, after 2 operations on the
//     communicator
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 0);
#ifdef FIXED
    int steps = 3;
#else
    int steps = rank == 1 ? 2 : 3;
#endif
    for (int step = 0; step < steps; step++) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
        MUST(cudaStreamSynchronize(stream));                                // @sync
    }
#ifndef FIXED
    if (rank == 1) {
        MPI_Finalize(); // @finalize
        return 0;
    }
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
