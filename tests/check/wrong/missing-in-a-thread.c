// A thread makes the calls, and the main thread waits for it in pthread_join. The thread
// of rank 1 has nothing to send, and leaves the broadcast out.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclBroadcast(count 4, ncclInt32, root 0), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclBroadcast at @broadcast for ncclBroadcast(count
//     4, ncclInt32, root 0) at @broadcast, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 0 operations on
//     the communicator
#include "../check.h"

#include <pthread.h>

static void *work(void *buf) {
    start_device();
#ifndef FIXED
    if (rank != 1)
#endif
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, stream)); // @broadcast
    MUST(cudaStreamSynchronize(stream));
    return NULL;
}

int main(void) {
    start_with_threads();
    int *buf = device_ints(4, rank);
    pthread_t thread;
    pthread_create(&thread, NULL, work, buf);
    pthread_join(thread, NULL);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
