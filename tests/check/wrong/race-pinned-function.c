// A function on one stream fills pinned memory that a copy on another one reads. The host
// has no part in it: an event between the streams is what lacks.
//
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: a function of cudaLaunchHostFunc writes to pinned memory that
//     a queued operation still uses
//
// expect: rank @any on @host: at @fill, byte 0 of 4000 bytes made at @made
// expect: queued: cudaMemcpyAsync at @copy, which reads it
// expect: Hint: cudaEventRecord on the one stream, cudaStreamWaitEvent on the other
#include "../check.h"

enum { COUNT = 1000 };

static void fill(void *pinned) {
    usleep(100000);
    for (int i = 0; i < COUNT; i++)
        ((int *)pinned)[i] = rank; // @fill
}

int main(void) {
    start();
    int *pinned, *buf = device_ints(COUNT, 0);
    size_t bytes = COUNT * sizeof(int);
    cudaStream_t filling = new_stream();
    cudaEvent_t filled;
    MUST(cudaMallocHost((void **)&pinned, bytes)); // @made
    MUST(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    MUST(cudaLaunchHostFunc(filling, fill, pinned));
    MUST(cudaEventRecord(filled, filling));
#ifdef FIXED
    MUST(cudaStreamWaitEvent(stream, filled, 0));
#endif
    MUST(cudaMemcpyAsync(buf, pinned, bytes, cudaMemcpyHostToDevice, stream)); // @copy
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(filling));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, sum_of_ranks());
    MUST(cudaEventDestroy(filled));
    MUST(cudaStreamDestroy(filling));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
