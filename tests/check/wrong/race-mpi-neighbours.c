// What comes from the neighbours in a ring goes on to the device before MPI_Wait.
// expect: NCCL CHECK: race: cudaMemcpyAsync reads a buffer that MPI still has
// expect: cudaMemcpyAsync at @copy
// expect: MPI_Ineighbor_alltoall at @exchange
#include "../check.h"

enum { N = 1000 };

int main(void) {
    start();
    int *halo, *device = device_ints(N, -1), mine[2 * N], round = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &nranks, &round, 0, &ring);
    MUST(cudaMallocHost((void **)&halo, 2 * N * sizeof(int)));
    for (int i = 0; i < 2 * N; i++)
        mine[i] = rank;
    size_t bytes = N * sizeof(int);
    MPI_Request done;
    MPI_Ineighbor_alltoall(mine, N, MPI_INT, halo, N, MPI_INT, ring, &done); // @exchange
#ifdef FIXED
    MPI_Wait(&done, MPI_STATUS_IGNORE);
#endif
    MUST(cudaMemcpyAsync(device, halo + N, bytes, cudaMemcpyDefault, stream)); // @copy
    MUST(cudaStreamSynchronize(stream));
    MPI_Wait(&done, MPI_STATUS_IGNORE);
    EXPECT_INTS(device, N, (rank + 1) % nranks);
    MPI_Comm_free(&ring);
    MUST(cudaFreeHost(halo));
    MUST(cudaFree(device));
    finish();
    return 0;
}
