// One rank leaves a call out. A thread of the program that only shows that it is alive
// makes no difference: it is said at once, and not only when the timeout is over.
//
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 1 on
//     communicator 1, waits for ranks that never come
// timeout: 100
#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int ended;
static long beats;

static void *beat(void *unused) {
    for (; !atomic_load(&ended); beats++)
        usleep(20000);
    return unused;
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    pthread_t thread;
    pthread_create(&thread, NULL, beat, NULL);
#ifndef FIXED
    if (rank != 1)
#endif
        ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream);
    cudaStreamSynchronize(stream);
    atomic_store(&ended, 1);
    pthread_join(thread, NULL);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
