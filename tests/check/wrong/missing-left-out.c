// "Only the root has something to send": rank 1 leaves the collective out and is done.
// The others wait; the real NCCL lets them wait for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclBroadcast(count 4, ncclInt32, root 0), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclBroadcast at @broadcast for ncclBroadcast(count
//     4, ncclInt32, root 0) at @broadcast, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 0 operations on
//     the communicator
// expect: The first collective of a communicator connects its ranks: the call itself
//     waits for all.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream)); // @broadcast
    }
    MUST(cudaStreamSynchronize(stream)); // @sync
    MUST(cudaFree(buf));
    finish();
    return 0;
}
