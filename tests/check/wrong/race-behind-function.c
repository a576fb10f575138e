// A copy is queued behind a function that takes a while, and the host fills the memory
// that the copy reads without waiting for either. The function does not wait for the
// host: which of the two is first is chance.
//
// expect: NCCL CHECK: race: the host writes to pinned memory that a queued operation
// expect: rank @any on @host: at @fill, byte 0 of 4000 bytes made at @made
// expect: queued: cudaMemcpyAsync at @copy, which reads it
#include "../check.h"

enum { COUNT = 1000 };

static void work(void *unused) {
    (void)unused;
    usleep(50000);
}

int main(void) {
    start();
    int *pinned, *buf = device_ints(COUNT, 0);
    size_t bytes = COUNT * sizeof(int);
    MUST(cudaMallocHost((void **)&pinned, bytes)); // @made
    MUST(cudaLaunchHostFunc(stream, work, NULL));
#ifndef FIXED
    MUST(cudaMemcpyAsync(buf, pinned, bytes, cudaMemcpyHostToDevice, stream)); // @copy
#endif
    for (int i = 0; i < COUNT; i++)
        pinned[i] = rank; // @fill
#ifdef FIXED
    MUST(cudaMemcpyAsync(buf, pinned, bytes, cudaMemcpyHostToDevice, stream));
#endif
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, sum_of_ranks());
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
