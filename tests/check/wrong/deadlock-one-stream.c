// Rank 1 queues its operations on two communicators in the opposite order on one stream.
// A stream works in order, so each operation waits for one that cannot start. The real
// NCCL hangs at the synchronisation.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: ... at @a_first, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: ... at @b_first, operation 1 on communicator 2; @others not
//     begun this operation
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank == 1) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, other, stream)); // @b_first
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    } else
#endif
    {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @a_first
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, other, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
