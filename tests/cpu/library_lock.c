// A lock of a library's own, inside cudaMalloc: it is free again after a while.
#include "../check/check.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int locked;

static void *opens(void *unused) {
    sleep(4);
    pthread_mutex_lock(&lock);
    locked = 0;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

// What the library calls for a large allocation.
int madvise(void *address, size_t bytes, int advice) {
    pthread_t thread;
    (void)address, (void)bytes, (void)advice;
    if (rank == 0 && locked && pthread_create(&thread, NULL, opens, NULL) == 0) {
        pthread_detach(thread);
        pthread_mutex_lock(&lock);
        while (locked)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int main(void) {
    void *large;
    start();
    locked = 1;
    if (rank == 0) {
        MUST(cudaMalloc(&large, 64 << 20));
        MUST(cudaFree(large));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("locked: %d\n", locked);
    finish();
    return 0;
}
