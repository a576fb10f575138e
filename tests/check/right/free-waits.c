// A buffer is freed after copies on a stream that nobody waits for: "cudaMalloc and
// cudaFree causes the GPU to synchronize across all executing CUDA streams" (CUDA C++
// Programming Guide, "Stream Ordered Memory Allocator"). And cudaFreeAsync on the stream
// itself.
#include "../check.h"

enum { N = 5000, ROUNDS = 10 };

int main(void) {
    start();
    int *sum = device_ints(N, 0), *mine = malloc(N * sizeof *mine), *scratch;
    size_t bytes = N * sizeof *mine;
    for (int i = 0; i < N; i++)
        mine[i] = rank;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            MUST(cudaMallocAsync((void **)&scratch, bytes, stream));
        else
            MUST(cudaMalloc((void **)&scratch, bytes));
        MUST(cudaMemcpyAsync(scratch, mine, bytes, cudaMemcpyHostToDevice, stream));
        MUST(cudaMemcpyAsync(sum, scratch, bytes, cudaMemcpyDeviceToDevice, stream));
        MUST(round % 2 ? cudaFreeAsync(scratch, stream) : cudaFree(scratch));
        MUST(ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT_INTS(sum, N, sum_of_ranks());
    }
    MUST(ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream));
    free(mine);
    MUST(cudaFree(sum)); // which waits for the collective, too
    finish();
    return 0;
}
