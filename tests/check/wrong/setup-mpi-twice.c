// Two threads bring something about, each by a broadcast, on one communicator and at the
// same time. MPI tells the two apart by their order, and there is none.
//
// expect: NCCL CHECK: setup: two threads are in collective calls of one MPI communicator
//     at the same time
// expect: on @host: MPI_Bcast at @bcast
// expect: meanwhile in another thread: MPI_Bcast at @bcast
#include "../check.h"

#include <pthread.h>
#include <unistd.h>

static void *bring(void *ranks) {
    int number = rank;
    if (rank == 0)
        usleep(200000); // so that the others are in both
    // @bcast
    MPI_Bcast(&number, 1, MPI_INT, 0, *(MPI_Comm *)ranks);
    EXPECT(number, 0);
    return NULL;
}

int main(void) {
    start_with_threads();
    MPI_Comm all = MPI_COMM_WORLD, own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, bring, &own);
#ifndef FIXED
    all = own;
#endif
    pthread_create(&threads[1], NULL, bring, &all);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    MPI_Comm_free(&own);
    finish();
    return 0;
}
