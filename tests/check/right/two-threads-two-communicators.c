// Each thread has a communicator and a stream of its own, and nothing orders the threads:
// a communicator's order is what counts, not the order among communicators that do not
// wait for each other.
#include "../check.h"
#include <pthread.h>

static ncclComm_t comms[2];

static void *work(void *argument) {
    int mine = *(int *)argument;
    start_device();
    cudaStream_t own = new_stream();
    int *buf = device_ints(100, rank);
    for (int i = 0; i < 10; i++) {
        MUST(ncclAllReduce(buf, buf, 100, ncclInt32, ncclMax, comms[mine], own));
        MUST(cudaStreamSynchronize(own));
        if ((rank + mine) % 2 == 0) {
            usleep(3000);
        }
    }
    EXPECT_INTS(buf, 100, nranks - 1);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(own));
    return NULL;
}

int main(void) {
    start_with_threads();
    comms[0] = comm;
    comms[1] = new_comm(MPI_COMM_WORLD);
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(ncclCommDestroy(comms[1]));
    finish();
    return 0;
}
