// A second thread registers the memory that will be used next with the communicator, as a
// window, while the first one adds numbers up on it. Both are calls of one communicator,
// and only one thread at a time may make them ("Thread Safety").
// expect: NCCL CHECK: setup: two threads call NCCL on one communicator at the same time
// expect: rank @any on @host: nccl... at ...
// expect: meanwhile in another thread: nccl... at ...
// expect: communicator 1: rank @any of @n ranks
#include "../check.h"

#include <pthread.h>

enum { BYTES = 1 << 21 };

static void *prepare(void *memory) {
    ncclWindow_t window;
    start_device();
    for (int i = 0; i < 5; i++) {
        MUST(ncclCommWindowRegister(comm, memory, BYTES, &window,
                                    NCCL_WIN_COLL_SYMMETRIC));
        MUST(ncclCommWindowDeregister(comm, window));
    }
    return NULL;
}

static void sum(void) {
    int *buf = device_ints(4, 0);
    for (int i = 0; i < 5; i++) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
        MUST(cudaStreamSynchronize(stream));
    }
    MUST(cudaFree(buf));
}

int main(void) {
    pthread_t thread;
    void *memory;
    start_with_threads();
    MUST(ncclMemAlloc(&memory, BYTES));
    pthread_create(&thread, NULL, prepare, memory);
#ifdef FIXED
    pthread_join(thread, NULL);
#endif
    sum();
#ifndef FIXED
    pthread_join(thread, NULL);
#endif
    MUST(ncclMemFree(memory));
    finish();
    return 0;
}
