// Requests that are freed before they are completed: "sent" is known by the answer, by a
// collective call that the receiver comes to behind its receive, or is not needed, since
// the buffer is only read again.
#include "../check.h"

enum { N = 1 << 14, BYTES = N * sizeof(int) };

int main(void) {
    start();
    int *host, *buf = device_ints(N, 1), word = 0;
    MUST(cudaMallocHost((void **)&host, BYTES));
    memset(host, 0, BYTES);
    for (int step = 0; step < 4; step++) {
        MPI_Request request;
        if (rank == 0) {
            MUST(cudaMemcpyAsync(host, buf, BYTES, cudaMemcpyDeviceToHost, stream));
            MUST(cudaStreamSynchronize(stream));
            for (int twice = 0; twice < 2; twice++) {
                MPI_Isend(host, N, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
                MPI_Request_free(&request);
                MUST(cudaMemcpyAsync(buf, host, BYTES, cudaMemcpyHostToDevice, stream));
            }
            if (step % 2 == 0)
                MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            for (int twice = 0; twice < 2; twice++)
                MPI_Recv(host, N, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT(host[N - 1], 1);
            if (step % 2 == 0)
                MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        }
        if (step % 2 == 1)
            use_comm(comm);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
