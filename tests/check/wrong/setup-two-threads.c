// Two threads call NCCL on one communicator, and nothing keeps them apart: the manual
// does not allow that ("Thread Safety"). With a lock, and in the same turn on all ranks,
// it is right.
// expect: NCCL CHECK: setup: two threads call NCCL on one communicator at the same time
// expect: rank @any on @host: ncclAllReduce at @call
// expect: meanwhile in another thread: ncclAllReduce at @call
// expect: communicator 1: rank @any of @n ranks
#include "../check.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *work(void *number) {
    int me = *(int *)number;
    start_device();
    cudaStream_t mine = new_stream();
    int *buf = device_ints(4, 0);
#ifdef FIXED
    const int times = 100;
#else
    const int times = 100000;
#endif
    for (int i = 0; i < times; i++) {
#ifdef FIXED
        pthread_mutex_lock(&lock);
        while (turn != me)
            pthread_cond_wait(&changed, &lock);
#endif
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, mine)); // @call
#ifdef FIXED
        turn = 1 - me;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
#endif
        if (i % 5000 == 4999)
            MUST(cudaStreamSynchronize(mine));
    }
    MUST(cudaStreamSynchronize(mine));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(mine));
    (void)lock;
    (void)changed;
    (void)turn;
    (void)me;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    start_with_threads();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    finish();
    return 0;
}
