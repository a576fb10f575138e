// Rank 1 calls another collective than the rest. The real NCCL hangs, or hands out wrong
// data and ncclSuccess.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: mismatch: the ranks call different operations at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclBroadcast(count 4, ncclInt32, root 0) at @broadcast
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream));
#else
    if (rank == 1) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    } else {
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream)); // @broadcast
    }
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
