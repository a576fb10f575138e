// Rank 1 calls the same two collectives as the rest, in the other order. A communicator
// pairs calls by their position, so the real NCCL hangs or hands out wrong data.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: mismatch: the ranks call different operations at operation 2 on
//     communicator 1
// expect: rank @any on @host: ncclBroadcast(count 4, ncclInt32, root 0) at @broadcast
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @early
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
#ifndef FIXED
    if (rank == 1) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @early
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream));
    } else
#endif
    {
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream)); // @broadcast
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
