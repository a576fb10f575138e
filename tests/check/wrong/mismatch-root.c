// Every rank names itself the root. The real NCCL hangs, or every rank keeps its own
// data.
// rank: 1
// alone: exit code 0
// warn: 1
// expect: NCCL CHECK: mismatch: the ranks give different roots at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclBroadcast(count 4, ncclInt32, root @same) at @broadcast
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    int root = 0;
#else
    int root = rank;
#endif
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, root, comm, stream)); // @broadcast
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
