// Two results in one piece of pinned memory: the host waits for the one and reads the
// other. On a GPU this is the old value, or the new one by luck.
// expect: NCCL CHECK: race: the host reads pinned memory that a queued operation still
//     uses
// expect: rank @any on @host: at @read, byte 12 of 16 bytes made at @malloc
// expect: queued: cudaMemcpyAsync at @second, which writes it
#include "../check.h"

int main(void) {
    start();
    cudaStream_t other = new_stream();
    int *sum = device_ints(2, rank), *mine = device_ints(2, rank), *pinned;
    MUST(cudaMallocHost((void **)&pinned, 4 * sizeof(int))); // @malloc
    MUST(ncclAllReduce(sum, sum, 2, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemcpyAsync(pinned, mine, 8, cudaMemcpyDeviceToHost, other));
    MUST(cudaMemcpyAsync(pinned + 2, sum, 8, cudaMemcpyDeviceToHost, stream)); // @second
    MUST(cudaStreamSynchronize(other));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    EXPECT(pinned[1], rank);
    EXPECT(pinned[3], sum_of_ranks()); // @read
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(sum));
    MUST(cudaFree(mine));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
