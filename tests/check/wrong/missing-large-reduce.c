// A reduce that one rank leaves out, of a buffer too large to travel with the
// announcement: the others add it up in parts, so all of them wait, not the root alone.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclReduce(count 1000, ncclInt32, ncclSum, root 0),
//     operation 2 on communicator 1, waits for ranks that never come
// expect 3+: rank @last on @host: waits in cudaStreamSynchronize at @sync for
//     ncclReduce(count 1000, ncclInt32, ncclSum, root 0) at @reduce, operation 2 on
//     communicator 1; rank 1 has not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 1 operation
//     on the communicator
#include "../check.h"

int main(void) {
    start();
    use_comm(comm); // the first collective connects: it waits for all by itself
    int *buf = device_ints(1000, 1);
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclReduce(buf, buf, 1000, ncclInt32, ncclSum, 0, comm, stream)); // @reduce
    }
    MUST(cudaStreamSynchronize(stream)); // @sync
    if (rank == 0) {
        EXPECT_INTS(buf, 1000, nranks);
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
