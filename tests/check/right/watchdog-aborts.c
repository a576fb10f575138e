// One rank leaves a call out. On the others the host waits for it, and a thread that has
// called nothing so far aborts the communicator when that takes too long (NCCL User
// Guide, "Fault Tolerance"). Then all make a new one.
#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int waits, late;

static void *watchdog(void *unused) {
    for (int slept = 0; slept < 40; slept++)
        usleep(50000);
    late = 1;
    if (atomic_load(&waits))
        MUST(ncclCommAbort(comm));
    return unused;
}

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    pthread_t thread;
    use_comm(comm); // else the call itself connects the ranks, and waits
    pthread_create(&thread, NULL, watchdog, NULL);
    atomic_store(&waits, rank > 0);
    if (rank > 0) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
        cudaStreamSynchronize(stream);
        EXPECT(atomic_load(&late), 1);
    }
    pthread_join(thread, NULL);
    if (rank == 0)
        MUST(ncclCommAbort(comm));
    MPI_Barrier(MPI_COMM_WORLD);
    comm = new_comm(MPI_COMM_WORLD);
    MUST(cudaMemset(buf, 0, 4 * sizeof(int)));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
