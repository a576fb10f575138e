// A rank writes on one stream, sends on it, and reads on another stream when the peer
// has answered. But the peer answers before it has waited for what it receives: so the
// answer says nothing of what stands before the send.
//
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank 0 on @host: cudaMemcpyAsync at @copy reads what
// expect: cudaMemsetAsync at @fill writes, and nothing makes one wait for the other
#include "../check.h"

enum { COUNT = 1000 };

int main(void) {
    start();
    int last = nranks - 1, *token = device_ints(1, 0), *values = device_ints(COUNT, 0),
        *pinned;
    cudaStream_t other = new_stream();
    MUST(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned));
    if (rank == 0) {
        MUST(cudaMemsetAsync(values, 1, COUNT * sizeof *values, stream)); // @fill
        MUST(ncclSend(token, 1, ncclInt32, last, comm, stream));
        MPI_Recv(NULL, 0, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        // @copy
        MUST(cudaMemcpyAsync(pinned, values, COUNT * sizeof *pinned,
                             cudaMemcpyDeviceToHost, other));
        MUST(cudaStreamSynchronize(other));
        printf("%d\n", pinned[0]);
        MPI_Send(NULL, 0, MPI_INT, last, 0, MPI_COMM_WORLD);
    } else if (rank == last) {
        MUST(ncclRecv(token, 1, ncclInt32, 0, comm, stream));
#ifdef FIXED
        MUST(cudaStreamSynchronize(stream));
#endif
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(token));
    MUST(cudaFree(values));
    finish();
    return 0;
}
