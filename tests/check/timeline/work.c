/*
 * Something of everything that a timeline shows, on two streams and two communicators:
 * copies, collectives, a group, an event that orders, a graph. Prints for each rank the
 * time between two events, in ms. Operations on stream one, in order: set, copy, three
 * ncclAllReduce, a group of a send and a receive, ncclReduce, copy, graph.
 *
 *     work [late]     the last rank comes 50 ms late to the first ncclAllReduce
 *     work [dies]     the last rank ends there, with exit code 3
 *     work [leaves]   nobody calls MPI_Finalize, and all is well
 */
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 18 };

static void check(int right, const char *what) {
    if (right)
        return;
    fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CUDA(call) check((call) == cudaSuccess, #call)
#define NCCL(call) check((call) == ncclSuccess, #call)

int main(int argc, char **argv) {
    int rank, n;
    const char *how = argc > 1 ? argv[1] : "";
    float *x, *y, ms, *host = malloc(N * sizeof *host);
    ncclUniqueId id;
    ncclComm_t comm, half;
    cudaStream_t one, two;
    cudaEvent_t begin, end, there;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    CUDA(cudaSetDevice(rank));
    if (rank == 0)
        NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    NCCL(ncclCommInitRank(&comm, n, id, rank));
    NCCL(ncclCommSplit(comm, rank % 2, rank, &half, NULL));
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    CUDA(cudaMalloc((void **)&x, N * sizeof *x));
    CUDA(cudaMalloc((void **)&y, N * sizeof *y));
    memset(host, 0, N * sizeof *host);
    CUDA(cudaMemcpy(y, host, N * sizeof *y, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == n - 1 && n > 1)
        MPI_Send(&n, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (rank == 0 && n > 1)
        MPI_Recv(&n, 1, MPI_INT, n - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    if (strcmp(how, "late") == 0 && rank == n - 1)
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    CUDA(cudaEventRecord(begin, one));
    CUDA(cudaMemsetAsync(x, 0, N * sizeof *x, one));
    CUDA(cudaMemcpyAsync(x, y, N * sizeof *x, cudaMemcpyDeviceToDevice, one));
    NCCL(ncclAllReduce(x, x, N, ncclFloat32, ncclSum, comm, one));
    if (strcmp(how, "dies") == 0 && rank == n - 1) {
        CUDA(cudaStreamSynchronize(one));
        exit(3);
    }
    NCCL(ncclAllReduce(x, x, N, ncclFloat32, ncclSum, half, one));
    NCCL(ncclAllReduce(x, x, N, ncclFloat32, ncclMax, comm, one));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(x, N / 2, ncclFloat32, (rank + 1) % n, comm, one));
    NCCL(ncclRecv(y, N / 2, ncclFloat32, (rank + n - 1) % n, comm, one));
    NCCL(ncclGroupEnd());
    CUDA(cudaEventRecord(there, one));
    CUDA(cudaStreamWaitEvent(two, there, 0));
    CUDA(cudaMemcpyAsync(host, y, N * sizeof *y, cudaMemcpyDeviceToHost, two));
    NCCL(ncclReduce(x, x, N, ncclFloat32, ncclSum, n - 1, comm, one));
    CUDA(cudaMemcpyAsync(x, x + N / 2, N / 2 * sizeof *x, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaEventRecord(end, one));
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaStreamSynchronize(two));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    printf("rank %d: %.6f ms\n", rank, ms);

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclBroadcast(x, x, N, ncclFloat32, 0, half, one));
    CUDA(cudaStreamEndCapture(one, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    CUDA(cudaGraphLaunch(executable, one));
    CUDA(cudaStreamSynchronize(one));
    if (strcmp(how, "leaves") == 0)
        return 0;
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    CUDA(cudaEventDestroy(there));
    CUDA(cudaStreamDestroy(one));
    CUDA(cudaStreamDestroy(two));
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
    NCCL(ncclCommDestroy(half));
    NCCL(ncclCommDestroy(comm));
    free(host);
    MPI_Finalize();
    return 0;
}
