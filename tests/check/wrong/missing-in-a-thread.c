// A thread of each rank communicates, and the first thread waits for its end. On rank 1
// it leaves the collective out. The real NCCL waits for ever, and pthread_join with it.
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 1 on
//     communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in cudaStreamSynchronize at @sync for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @call
#include "../check.h"

#include <pthread.h>

static void *work(void *buf) {
    start_device();
#ifdef FIXED
    int left_out = 0;
#else
    int left_out = rank == 1;
#endif
    if (!left_out) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
    }
    MUST(cudaStreamSynchronize(stream)); // @sync
    return NULL;
}

int main(void) {
    pthread_t thread;
    start();
    int *buf = device_ints(4, rank);
    pthread_create(&thread, NULL, work, buf);
    pthread_join(thread, NULL);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
