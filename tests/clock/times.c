/*
 * A program that does a bit of everything, and prints the modelled times of each rank
 * with all their digits. Each rank really sleeps now and then, as long as chance has it:
 * that must not be seen.
 *
 *     NCCL_CPU_CLOCK=h200 mpirun -np N ./times
 */
#include "clock_test.h"

#include <cublas_v2.h>
#include <time.h>
#include <unistd.h>

enum { N = 40000 };

static void sleep_a_little(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    unsigned x = (unsigned)t.tv_nsec * 2654435761u ^ (unsigned)getpid() * 40503u;
    usleep(x >> 8 & 0xfff);
}

static void note(const char *what, double seconds) {
    double all[256];
    MPI_Gather(&seconds, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < nranks; r++)
        printf("%s %d %.17g\n", what, r, all[r]);
    sleep_a_little();
}

int main(int argc, char **argv) {
    open_all(&argc, &argv);
    float *a = allocate(N * (size_t)nranks * sizeof(float));
    float *b = allocate(N * (size_t)nranks * sizeof(float)), *host, ms;
    float *c = allocate(N * sizeof(float)), *d = allocate(N * sizeof(float));
    cudaStream_t other;
    cudaEvent_t begin, middle, end;
    cublasHandle_t blas;
    ncclComm_t second;
    const float one = 1;
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    MUST(cudaMallocHost((void **)&host, N * sizeof(float)));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&middle));
    MUST(cudaEventCreate(&end));
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, other));
    MUST(ncclCommSplit(comm, 0, -rank, &second, NULL));
    note("made", MPI_Wtime());

    // Each rank comes at another time: it queues so many small things before.
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < (rank * 7 + round) % 5; i++)
            MUST(cudaMemsetAsync(a, 0, 1024, stream));
        sleep_a_little();
        MUST(cudaEventRecord(begin, stream));
        MUST(ncclAllReduce(a, b, N, ncclFloat32, ncclSum, comm, stream));
        MUST(cudaEventRecord(middle, stream));
        MUST(cublasSaxpy(blas, N, &one, c, 1, d, 1));
        MUST(cudaStreamWaitEvent(other, middle, 0));
        MUST(ncclBroadcast(c, d, N, ncclFloat32, nranks - 1, second, other));
        MUST(ncclReduce(a, a, 10, ncclFloat32, ncclSum, 0, comm, stream));
        MUST(cublasSaxpy(blas, N, &one, d, 1, c, 1));
        MUST(ncclGroupStart());
        MUST(ncclSend(a, N / (size_t)(1 + round), ncclFloat32, next, comm, stream));
        MUST(ncclRecv(b + N * (nranks - 1), N / (size_t)(1 + round), ncclFloat32,
                      previous, comm, stream));
        MUST(ncclGroupEnd());
        sleep_a_little();
        MUST(cudaMemcpyAsync(host, a, 4096, cudaMemcpyDeviceToHost, stream));
        MUST(cudaEventRecord(end, stream));
        MUST(cudaStreamSynchronize(other));
        note("other", MPI_Wtime());
        while (cudaEventQuery(end) == cudaErrorNotReady)
            sleep_a_little();
        MUST(cudaEventElapsedTime(&ms, begin, end));
        note("elapsed", ms);
        note("wtime", MPI_Wtime());
    }

    // A graph, twice.
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        MUST(ncclAllGather(a + 100 * (size_t)rank, a, 100, ncclFloat32, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    note("graph", MPI_Wtime());
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));

    // MPI: round the ring, by one rank after the other, and all at once.
    int token = 0;
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sleep_a_little();
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank + 1 < nranks)
        MPI_Isend(&token, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &request);
    note("token", MPI_Wtime());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int from_before;
    MPI_Irecv(&from_before, 1, MPI_INT, previous, 6, MPI_COMM_WORLD, &request);
    sleep_a_little();
    MPI_Send(&token, 1, MPI_INT, next, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&token, 1, MPI_INT, next, 7, &from_before, 1, MPI_INT, previous, 7,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note("ring", MPI_Wtime());
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    MPI_Bcast(&token, 1, MPI_INT, 0, pair);
    double before = MPI_Wtime();
    while (MPI_Wtime() < before + (rank + 1) * 1e-4) // watches the clock
        ;
    MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, pair);
    note("pair", MPI_Wtime());
    MPI_Comm_free(&pair);
    MUST(cudaDeviceSynchronize());

    MUST(ncclCommDestroy(second));
    MUST(cublasDestroy(blas));
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(middle));
    MUST(cudaEventDestroy(end));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
    MUST(cudaFree(d));
    close_all();
    return 0;
}
