// A column of a field in pinned memory is sent (MPI_Type_vector) while the lower half of
// the field still comes from the device.
//
// expect: NCCL CHECK: race: MPI_Send reads a buffer that a queued operation still uses
// expect: MPI_Send at @send
// expect: cudaMemcpyAsync at @copy
#include "../check.h"

enum { N = 100 };

int main(void) {
    start();
    int *field, *device = device_ints(N * N, rank), column[N];
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    MUST(cudaMallocHost((void **)&field, N * N * sizeof(int)));
    int *half = field + N * N / 2;
    size_t bytes = N * N / 2 * sizeof(int);
    for (int i = 0; i < N * N; i++)
        field[i] = rank;
    MPI_Datatype last;
    MPI_Type_vector(N, 1, N, MPI_INT, &last);
    MPI_Type_commit(&last);
    MUST(ncclAllReduce(device, device, N * N, ncclInt32, ncclMax, comm, stream));
    MUST(cudaMemcpyAsync(half, device, bytes, cudaMemcpyDefault, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MPI_Request arrives;
    MPI_Irecv(column, N, MPI_INT, from, 0, MPI_COMM_WORLD, &arrives);
    MPI_Send(field + N - 1, 1, last, to, 0, MPI_COMM_WORLD); // @send
    MPI_Wait(&arrives, MPI_STATUS_IGNORE);
    MUST(cudaStreamSynchronize(stream));
    EXPECT(column[0], from);
    EXPECT(column[N - 1], nranks - 1);
    MPI_Type_free(&last);
    MUST(cudaFreeHost(field));
    MUST(cudaFree(device));
    finish();
    return 0;
}
