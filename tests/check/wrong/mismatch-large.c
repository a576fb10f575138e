// Counts that differ, of buffers too large to travel with the announcement. The real
// NCCL hangs, or compares what does not belong together.
// rank: 1
// alone: exit code 0
// warn: 1
// expect: NCCL CHECK: mismatch: the ranks give different counts at operation @any on
//     communicator 1
// expect: rank @any on @host: ncclReduce(count 938, ncclInt32, ncclMax, root 0) at
//     @reduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(1000, rank);
    for (int again = 0; again < 3; again++) {
        int count = 936;
#ifndef FIXED
        if (rank == nranks - 1 && again == 2) {
            count = 938;
        }
#endif
        MUST(ncclAllReduce(buf, buf, 936, ncclInt32, ncclMax, comm, stream));
        // @reduce
        MUST(ncclReduce(buf, buf, count, ncclInt32, ncclMax, 0, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 936, nranks - 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
