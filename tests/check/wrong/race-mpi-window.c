// MPI_Get brings the neighbour's numbers into pinned memory, and they go on to the device
// before the window is waited for.
// expect: NCCL CHECK: race: cudaMemcpyAsync reads a buffer that MPI still has
// expect: cudaMemcpyAsync at @copy
// expect: MPI_Get at @get writes until its window is waited for
// expect: Hint: MPI_Win_fence, MPI_Win_flush or MPI_Win_unlock
#include "../check.h"

enum { N = 1000 };

int main(void) {
    start();
    int *pinned, *device = device_ints(N, -1), mine[N], next = (rank + 1) % nranks;
    size_t bytes = N * sizeof(int);
    MUST(cudaMallocHost((void **)&pinned, bytes));
    for (int i = 0; i < N; i++)
        mine[i] = rank;
    MPI_Win window;
    MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
    MPI_Get(pinned, N, MPI_INT, next, 0, N, MPI_INT, window); // @get
#ifdef FIXED
    MPI_Win_flush(next, window);
#endif
    MUST(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyDefault, stream)); // @copy
    MUST(cudaStreamSynchronize(stream));
    MPI_Win_unlock(next, window);
    EXPECT_INTS(device, N, next);
    MPI_Win_free(&window);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
    finish();
    return 0;
}
