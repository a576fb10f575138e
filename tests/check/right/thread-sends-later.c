// The main thread waits for a collective to which the other rank comes when it has a
// message, and that is sent by a second thread, which has slept until then. Any thread
// may call MPI (MPI_THREAD_MULTIPLE), and this one does so for the first time.
//
// ranks: 2
#include "../check.h"

#include <pthread.h>

static void *send_later(void *unused) {
    sleep(2);
    MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
    return unused;
}

int main(void) {
    start_with_threads();
    pthread_t thread;
    if (rank == 0)
        pthread_create(&thread, NULL, send_later, NULL);
    else
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    use_comm(comm);
    if (rank == 0)
        pthread_join(thread, NULL);
    finish();
    return 0;
}
