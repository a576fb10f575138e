// A second thread sends while MPI was started by MPI_Init, which promises that there is
// one thread only. It goes well, until both threads are in MPI at once.
// expect: NCCL CHECK: setup: a thread that did not start MPI calls MPI_Send, and MPI was
//     started with MPI_THREAD_SINGLE
// expect: rank 0 on @host: MPI_Send at @send
// exit: 0
#include "../check.h"

#include <pthread.h>

static void *report_progress(void *number) {
    MPI_Send(number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); // @send
    return NULL;
}

int main(void) {
#ifdef FIXED
    start_with_threads();
#else
    start();
#endif
    int number = rank;
    pthread_t thread;
    if (rank == 0) {
        pthread_create(&thread, NULL, report_progress, &number);
        pthread_join(thread, NULL);
    } else if (rank == 1) {
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    use_comm(comm);
    finish();
    return 0;
}
