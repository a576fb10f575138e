// All ranks pass count 0, but not to the same collective. The real NCCL does nothing and
// says nothing, until the day the count is not 0.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks call different operations at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclBroadcast(count 0, ncclInt32, root 0) at @broadcast
// expect: rank 1 on @host: ncclReduce(count 0, ncclInt32, ncclSum, root 0) at @reduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    MUST(ncclBroadcast(buf, buf, 0, ncclInt32, 0, comm, stream));
#else
    if (rank == 1) {
        MUST(ncclReduce(buf, buf, 0, ncclInt32, ncclSum, 0, comm, stream)); // @reduce
    } else {
        MUST(ncclBroadcast(buf, buf, 0, ncclInt32, 0, comm, stream)); // @broadcast
    }
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
