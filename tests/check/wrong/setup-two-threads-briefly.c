// A second thread sums its numbers up on the communicator of the first, while that one
// does the same: a few calls each, which seldom meet by themselves.
// expect: NCCL CHECK: setup: two threads call NCCL on one communicator at the same time
// expect: rank @any on @host: ncclAllReduce at ...
// expect: communicator 1: rank @any of @n ranks
#include "../check.h"

#include <pthread.h>

static void sum(int calls) {
    cudaStream_t mine = new_stream();
    int *buf = device_ints(4, 0);
    for (int i = 0; i < calls; i++)
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, mine));
    MUST(cudaStreamSynchronize(mine));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(mine));
}

static void *statistics(void *unused) {
    start_device();
    sum(3);
    return unused;
}

int main(void) {
    pthread_t thread;
    start_with_threads();
    pthread_create(&thread, NULL, statistics, NULL);
#ifdef FIXED
    pthread_join(thread, NULL);
#endif
    sum(5);
#ifndef FIXED
    pthread_join(thread, NULL);
#endif
    finish();
    return 0;
}
