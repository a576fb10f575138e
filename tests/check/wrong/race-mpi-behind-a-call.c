// A persistent send has its buffer from MPI_Start until MPI_Wait. Here the next step's
// copy puts new numbers there before: behind the all-reduce, when the other rank mostly
// has the last ones, but MPI need not.
//
// expect: NCCL CHECK: race: cudaMemcpyAsync writes a buffer that MPI still has
// expect: rank 1 on @host: cudaMemcpyAsync at @copy writes what
// expect: MPI_Start at @start reads until its request is completed
#include "../check.h"

enum { N = 1 << 14, BYTES = N * sizeof(int) };

int main(void) {
    start();
    int *sum = device_ints(N, 1), *host;
    cudaMallocHost((void **)&host, BYTES);
    memset(host, 0, BYTES);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Recv_init(host, N, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    else if (rank == 1)
        MPI_Send_init(host, N, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    for (int step = 0; step < 3; step++) {
        if (rank < 2)
            MPI_Start(&request); // @start
#ifdef FIXED
        if (rank < 2)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
        ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream);
        if (rank == 1)
            cudaMemcpyAsync(host, sum, BYTES, cudaMemcpyDeviceToHost, stream); // @copy
        cudaStreamSynchronize(stream);
        if (rank < 2)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank < 2)
        MPI_Request_free(&request);
    cudaFree(sum);
    cudaFreeHost(host);
    finish();
    return 0;
}
