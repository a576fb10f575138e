// Rank 1 calls one operation more than the rest, which go on to a host collective. The
// real NCCL waits for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 1 on @host: waits in cudaStreamSynchronize at @sync for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @extra, operation 2 on communicator
//     1; @others not begun this operation
// expect: rank 0 on @host: waits in MPI_Barrier at @barrier, after 1 operation on the
//     communicator
// expect: The cycle: rank 1 waits for rank 0, which waits for rank 1.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 0);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
#ifndef FIXED
    if (rank == 1) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @extra
    }
#endif
    MUST(cudaStreamSynchronize(stream)); // @sync
    MPI_Barrier(MPI_COMM_WORLD);         // @barrier
    MUST(cudaFree(buf));
    finish();
    return 0;
}
