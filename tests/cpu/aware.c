/*
 * MPI with device memory, as CPU_MPI=cuda-aware has it: sent, received, reduced, in
 * place, without waiting, with a request, in turns with NCCL.
 */
#include "ints.h"
#include <mpi.h>

enum { N = 5000 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    ncclUniqueId id;
    ncclComm_t comm;
    CUDA(cudaSetDevice(tap_rank));
    if (tap_rank == 0)
        NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    NCCL(ncclCommInitRank(&comm, tap_ranks, id, tap_rank));
    int *a = new_ints(N), *b = new_ints(N);
    int right = (tap_rank + 1) % tap_ranks, left = (tap_rank + tap_ranks - 1) % tap_ranks;
    int sum = tap_ranks * (tap_ranks - 1) / 2;

    set_ints(a, N, tap_rank);
    CUDA(cudaDeviceSynchronize());
    MPI_Sendrecv(a, N, MPI_INT, right, 0, b, N, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect_ints(b, N, left, "MPI_Sendrecv");
    point("MPI_Sendrecv");

    // What cudaMemcpy has brought may be sent at once.
    int values[N];
    for (int i = 0; i < N; i++)
        values[i] = tap_rank + 1;
    CUDA(cudaMemcpy(b, values, sizeof values, cudaMemcpyHostToDevice));
    MPI_Allreduce(MPI_IN_PLACE, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_ints(b, N, sum + tap_ranks, "MPI_Allreduce after cudaMemcpy");
    point("what cudaMemcpy has brought");

    MPI_Request requests[2];
    set_ints(b, N, -1);
    CUDA(cudaDeviceSynchronize());
    MPI_Irecv(b, N, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(a, N, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect_ints(b, N, left, "MPI_Irecv");
    point("MPI_Isend and MPI_Irecv");

    MPI_Send_init(a, N, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(b, N, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect_ints(b, N, right, "MPI_Recv_init");
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&requests[i]);
    point("requests that are started");

    MPI_Win window;
    MPI_Win_create(b, N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Win_fence(0, window);
    MPI_Put(a, N, MPI_INT, right, 0, N, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    expect_ints(b, N, left, "MPI_Put");
    point("MPI_Put");

    MPI_Allreduce(MPI_IN_PLACE, a, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_ints(a, N, sum, "MPI_Allreduce");
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    MPI_Allreduce(a, b, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    expect_ints(b, N, sum * tap_ranks, "MPI behind NCCL");
    point("in turns with NCCL");

    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    NCCL(ncclCommDestroy(comm));
    return finish();
}
