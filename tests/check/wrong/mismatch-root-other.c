// Every rank takes the next one for the root, so nobody sends. The real NCCL hangs, or
// every rank ends with what it had.
// rank: 1
// alone: hangs
// warn: 1
// expect: NCCL CHECK: mismatch: the ranks give different roots at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclBroadcast(count 4, ncclInt32, root ...) at @broadcast
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    int root = 1;
#else
    int root = (rank + 1) % nranks;
#endif
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, root, comm, stream)); // @broadcast
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
