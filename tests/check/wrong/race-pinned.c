// The copy to pinned memory is asynchronous, and the host reads the memory before it has
// waited. On a GPU this is the old value, or the new one by luck.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: the host reads pinned memory that a queued operation still
//     uses
// expect: rank @any on @host: at @read, byte 12 of 16 bytes made at @malloc
// expect: queued: cudaMemcpyAsync at @copy, which writes it
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int *pinned;
    MUST(cudaMallocHost((void **)&pinned, 4 * sizeof(int))); // @malloc
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    // @copy
    MUST(cudaMemcpyAsync(pinned, buf, 4 * sizeof(int), cudaMemcpyDeviceToHost, stream));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    EXPECT(pinned[3], sum_of_ranks()); // @read
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
