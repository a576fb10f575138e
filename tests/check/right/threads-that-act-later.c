// Two threads beside one that waits. One, which has told nothing of itself, reads what
// somebody else writes, and makes the broadcast that the other rank waits for. The other
// looks ten times a second whether there is progress, and when there is none aborts the
// communicator, which another thread may do (NCCL User Guide, "Fault Tolerance").
#include "../check.h"

#include <pthread.h>

static int *buf, ends[2], aborted;

static void *read_input(void *unused) {
    int number;
    if (read(ends[0], &number, sizeof number) != sizeof number)
        return unused;
    start_device();
    MUST(cudaMemcpyAsync(buf, &number, sizeof number, cudaMemcpyHostToDevice, stream));
    MUST(ncclBroadcast(buf, buf, 1, ncclInt32, 0, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    return unused;
}

static void *watch(void *unused) {
    start_device();
    usleep(1500000); // rank 1 will never come
    MUST(ncclCommAbort(comm));
    aborted = 1;
    return unused;
}

int main(void) {
    start();
    pthread_t thread;
    int number = 42, there;
    buf = device_ints(1, 0);
    if (rank == 0 && pipe(ends) == 0) {
        pthread_create(&thread, NULL, read_input, NULL);
        if (fork() == 0) {
            sleep(1);
            _exit(write(ends[1], &number, sizeof number) < 0);
        }
        MPI_Recv(&there, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
    } else {
        MUST(ncclBroadcast(buf, buf, 1, ncclInt32, 0, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT_INTS(buf, 1, 42);
        if (rank == 1)
            MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        pthread_create(&thread, NULL, watch, NULL);
        MUST(ncclAllReduce(buf, buf, 1, ncclInt32, ncclSum, comm, stream));
        (void)!cudaStreamSynchronize(stream);
        pthread_join(thread, NULL);
        EXPECT(aborted, 1);
    } else {
        MUST(ncclCommAbort(comm));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(buf));
    comm = new_comm(MPI_COMM_WORLD);
    stream = new_stream();
    use_comm(comm);
    finish();
    return 0;
}
