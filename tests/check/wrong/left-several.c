// Rank 1 returns early from its part of the work and leaves things of every kind behind.
// The real CUDA and NCCL say nothing.
// rank: 1
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: rank 1...: 1 device buffer (made at @malloc), 1 stream (made at @stream), 1
//     event (made at @event)
#include "../check.h"

static void work(void) {
    int *buf;
    cudaStream_t other;
    cudaEvent_t event;
    MUST(cudaMalloc((void **)&buf, 4 * sizeof(int))); // @malloc
    MUST(cudaStreamCreate(&other));                   // @stream
    MUST(cudaEventCreate(&event));                    // @event
#ifndef FIXED
    if (rank == 1) {
        return;
    }
#endif
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFree(buf));
}

int main(void) {
    start();
    work();
    finish();
    return 0;
}
