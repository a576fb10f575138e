// Messages are sent and forgotten: nobody asks whether they are on their way when the
// next one is put in the same place.
//
// expect: NCCL CHECK: race: cudaMemcpyAsync writes a buffer that MPI still has
// expect: MPI_Isend at @send reads until it has sent them
// expect: nobody knows until when: MPI_Request_free at @free
#include "../check.h"

enum { N = 1 << 14, BYTES = N * sizeof(int) };

int main(void) {
    start();
    int *host, *buf = device_ints(N, rank);
    MUST(cudaMallocHost((void **)&host, BYTES));
    for (int step = 0; step < 3; step++) {
        if (rank == 0) {
            MPI_Request request;
            // @copy
            MUST(cudaMemcpyAsync(host, buf, BYTES, cudaMemcpyDeviceToHost, stream));
            MUST(cudaStreamSynchronize(stream));
            MPI_Isend(host, N, MPI_INT, 1, 0, MPI_COMM_WORLD, &request); // @send
#ifdef FIXED
            MPI_Wait(&request, MPI_STATUS_IGNORE);
#else
            MPI_Request_free(&request); // @free
#endif
        } else if (rank == 1) {
            MPI_Recv(host, N, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    use_comm(comm);
    MUST(cudaFreeHost(host));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
