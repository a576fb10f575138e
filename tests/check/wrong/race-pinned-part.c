// Two results in one piece of pinned memory: the host waits for the one and reads the
// other. On a GPU this is the old value, or the new one by luck.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: the host reads pinned memory that a queued operation still
//     uses
// expect: rank @any on @host: at @read, byte 32764 of 32768 bytes made at @malloc
// expect: queued: cudaMemcpyAsync at @second, which writes it
#include "../check.h"

enum { N = 4096, BYTES = N * sizeof(int) };

int main(void) {
    start();
    cudaStream_t other = new_stream();
    int *sum = device_ints(N, rank), *mine = device_ints(N, rank), *pinned;
    MUST(cudaMallocHost((void **)&pinned, 2 * BYTES)); // @malloc
    MUST(ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream));
    MUST(
        cudaMemcpyAsync(pinned, mine, N * sizeof *pinned, cudaMemcpyDeviceToHost, other));
    // @second
    MUST(cudaMemcpyAsync(pinned + N, sum, BYTES, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(other));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    EXPECT(pinned[N - 1], rank);
    EXPECT(pinned[2 * N - 1], sum_of_ranks()); // @read
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(sum));
    MUST(cudaFree(mine));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
