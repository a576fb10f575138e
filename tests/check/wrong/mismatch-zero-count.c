// Rank 1 has nothing to sum and says count 0. In the real NCCL it returns at once, and
// the other ranks wait for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: mismatch: the ranks give different counts at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: rank 1 on @host: ncclAllReduce(count 0, ncclInt32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    int count = 4;
#else
    int count = rank == 1 ? 0 : 4;
#endif
    MUST(ncclAllReduce(buf, buf, count, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
