// The host sleeps until a function on the stream wakes it, behind a collective that
// another rank leaves out. The real NCCL hangs.
// expect: NCCL CHECK: missing: a thread sleeps, and nobody is left to wake it
// expect: rank 0 on @host: sleeps behind ncclAllReduce at @allreduce until another of its
//     threads wakes it
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish
#include "../check.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done;

static void wake(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
        MUST(cudaLaunchHostFunc(stream, wake, NULL));
        pthread_mutex_lock(&lock);
        while (!done)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
