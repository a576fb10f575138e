// MPI receives every other block of pinned memory (MPI_Type_vector), and a copy from the
// device fills the blocks between: no byte is used by both.
#include "../check.h"

enum { BLOCK = 1000, BLOCKS = 3 };

int main(void) {
    start();
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    int *pinned, *buf = device_ints(BLOCK, 100 + rank);
    MUST(cudaMallocHost((void **)&pinned, 2 * BLOCKS * BLOCK * sizeof(int)));
    int *mine = malloc(BLOCKS * BLOCK * sizeof(int));
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        mine[i] = rank;
    MPI_Datatype every_other;
    MPI_Type_vector(BLOCKS, BLOCK, 2 * BLOCK, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Request request;
    MPI_Irecv(pinned, 1, every_other, from, 0, MPI_COMM_WORLD, &request);
    for (int b = 0; b < BLOCKS; b++)
        MUST(cudaMemcpyAsync(pinned + (2 * b + 1) * BLOCK, buf, BLOCK * sizeof(int),
                             cudaMemcpyDeviceToHost, stream));
    MPI_Send(mine, BLOCKS * BLOCK, MPI_INT, to, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MUST(cudaStreamSynchronize(stream));
    for (int b = 0; b < BLOCKS; b++) {
        EXPECT(pinned[2 * b * BLOCK], from);
        EXPECT(pinned[(2 * b + 2) * BLOCK - 1], 100 + rank);
    }
    MPI_Type_free(&every_other);
    free(mine);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
