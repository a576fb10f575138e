// Two threads call NCCL on one communicator, and nothing keeps them apart: the manual
// does not allow that ("Thread Safety"). With a lock, and in the same turn on all ranks,
// it is right.
// rank: all
// alone: a call returns 5
// expect: NCCL CHECK: setup: two threads call NCCL on one communicator at the same time
// expect: rank @any on @host: ncclAllReduce at @call
// expect: meanwhile in another thread: ncclAllReduce at @call
// expect: communicator 1: rank @any of @n ranks
#include "../check.h"

#include <pthread.h>

#ifdef FIXED
enum { ROUNDS = 3, CALLS = 20 };
#else
enum { ROUNDS = 50, CALLS = 3000 }; // a thread's turn on a processor ends in one of them
#endif

static pthread_barrier_t together;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void wait_for_turn(int me) {
    pthread_mutex_lock(&lock);
    while (turn != me)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void pass_turn(int me) {
    pthread_mutex_lock(&lock);
    turn = 1 - me;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *work(void *number) {
    int me = *(int *)number;
    start_device();
    cudaStream_t mine = new_stream();
    int *buf = device_ints(4, 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
#ifdef FIXED
        wait_for_turn(me);
#endif
        for (int i = 0; i < CALLS; i++)
            MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, mine)); // @call
        pass_turn(me);
        MUST(cudaStreamSynchronize(mine));
    }
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(mine));
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    start_with_threads();
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    (void)wait_for_turn;
    finish();
    return 0;
}
