// The second call on a split communicator has another count on its rank 1. The real NCCL
// hangs, or sums what does not belong together. The report has to tell the communicators
// and their operations apart.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different counts at operation 2 on
//     communicator 2
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @second
// expect: rank 1 on @host: ncclAllReduce(count 3, ncclInt32, ncclSum) at @second
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    ncclComm_t part;
    MUST(ncclCommSplit(comm, 0, rank, &part, NULL));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, part, stream));
#ifdef FIXED
    int count = 4;
#else
    int count = rank == 1 ? 3 : 4;
#endif
    MUST(ncclAllReduce(buf, buf, count, ncclInt32, ncclSum, part, stream)); // @second
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommDestroy(part));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
