// The host writes the next values into pinned memory while the copy of the last ones to
// the device may still be running. On a GPU either may arrive.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: the host writes to pinned memory that a queued operation
//     still uses
// expect: rank @any on @host: at @write, byte 0 of 16 bytes made at @malloc
// expect: queued: cudaMemcpyAsync at @copy, which reads it
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 0);
    int *pinned;
    MUST(cudaMallocHost((void **)&pinned, 4 * sizeof(int))); // @malloc
    pinned[0] = rank;
    // @copy
    MUST(cudaMemcpyAsync(buf, pinned, 4 * sizeof(int), cudaMemcpyHostToDevice, stream));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    pinned[0] = -1; // @write
    MUST(ncclAllReduce(buf, buf, 1, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 1, sum_of_ranks());
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
