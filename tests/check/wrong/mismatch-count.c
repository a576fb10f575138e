// Every rank sums as many elements as it happens to have. The real NCCL hangs, or sums
// what does not belong together.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: mismatch: the ranks give different counts at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclAllReduce(count 10, ncclInt32, ncclSum) at @allreduce
// expect: rank 1 on @host: ncclAllReduce(count 11, ncclInt32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
#ifdef FIXED
    int mine = 10;
#else
    int mine = rank == 1 ? 11 : 10;
#endif
    int *buf = device_ints(mine, rank);
    MUST(ncclAllReduce(buf, buf, mine, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
