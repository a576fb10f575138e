// One rank's call fails, because of its root, and nobody looks at what it returns. The
// others wait; so they do with the real NCCL.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: note: rank 1: ncclBroadcast at @broadcast returned
// expect: NCCL CHECK: missing: ncclBroadcast(count 4, ncclInt32, root 0), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclBroadcast at @broadcast for ncclBroadcast(count
//     4, ncclInt32, root 0) at @broadcast, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 0 operations on
//     the communicator; got an error at @broadcast: ncclBroadcast: root @n, and the
//     communicator has @n ranks
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), root = 0;
#ifndef FIXED
    if (rank == 1) {
        root = nranks; // "the last one"
    }
#endif
    ncclBroadcast(buf, buf, 4, ncclInt32, root, comm, stream); // @broadcast
    MUST(cudaStreamSynchronize(stream));                       // @sync
    MUST(cudaFree(buf));
    finish();
    return 0;
}
