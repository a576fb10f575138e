// Stream 0 is each thread's own (CUDA Programming Guide, "Default Stream"). While one
// thread's waits for a message of another rank, the other's goes on; the message is sent
// only then.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "../check.h"

#include <pthread.h>
#include <semaphore.h>

enum { N = 64 };
static sem_t queued;
static int *box, device;

static void *receive(void *unused) {
    int got[N] = {0};
    MUST(cudaSetDevice(device));
    MUST(ncclRecv(box, N, ncclInt32, 0, comm, cudaStreamPerThread));
    sem_post(&queued);
    MUST(cudaMemcpy(got, box, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(got[N - 1], 9);
    return unused;
}

int main(void) {
    start();
    int *other = device_ints(N, 3), token = 5;
    box = device_ints(N, 9);
    // The first message opens the connection.
    if (rank == 0)
        MUST(ncclSend(box, N, ncclInt32, 1, comm, cudaStreamPerThread));
    if (rank == 1)
        MUST(ncclRecv(other, N, ncclInt32, 0, comm, cudaStreamPerThread));
    MUST(cudaStreamSynchronize(0));
    sem_init(&queued, 0, 0);
    MUST(cudaGetDevice(&device));
    if (rank == 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, receive, NULL);
        sem_wait(&queued);
        MUST(cudaMemset(other, 0, N * sizeof(int)));
        MUST(cudaMemcpyAsync(other, &token, sizeof token, cudaMemcpyHostToDevice, 0));
        MUST(cudaStreamSynchronize(0));
        MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        pthread_join(thread, NULL);
    }
    if (rank == 0) {
        MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MUST(ncclSend(box, N, ncclInt32, 1, comm, cudaStreamPerThread));
        MUST(cudaStreamSynchronize(0));
    }
    sem_destroy(&queued);
    MUST(cudaFree(box));
    MUST(cudaFree(other));
    finish();
    return 0;
}
