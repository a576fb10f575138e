// Two threads of each process take turns on one communicator and one stream. NCCL allows
// it as long as the order is the same on every rank.
#include "../check.h"
#include <pthread.h>

enum { TURNS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static int *buf;

static void *every_second_turn(void *argument) {
    int mine = *(int *)argument;
    start_device(); // the current device is each thread's own
    for (int i = mine; i < TURNS; i += 2) {
        pthread_mutex_lock(&lock);
        while (turn != i) {
            pthread_cond_wait(&changed, &lock);
        }
        if (i % 2 == 0) {
            MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        } else {
            MUST(ncclBroadcast(buf, buf, 4, ncclInt32, i % nranks, comm, stream));
        }
        if (i % 5 == 0) {
            MUST(cudaStreamSynchronize(stream));
        }
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    start_with_threads();
    buf = device_ints(4, rank);
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, every_second_turn, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
