// The host writes to pinned memory after cudaFreeHost. The buffer is large: a small one
// lies in a piece of memory that stays.
// rank: all
// alone: crash
// expect: NCCL CHECK: memory: the host writes to pinned memory that was freed before
// expect: rank @any on @host: at @write, byte 4 of 4194304 bytes made at @made, freed at
//     @freed
#include "../check.h"

enum { COUNT = 1 << 20 };

int main(void) {
    start();
    volatile int *numbers;
    MUST(cudaMallocHost((void **)&numbers, COUNT * sizeof *numbers)); // @made
#ifndef FIXED
    MUST(cudaFreeHost((void *)numbers)); // @freed
#endif
    numbers[1] = 5; // @write
#ifdef FIXED
    MUST(cudaFreeHost((void *)numbers));
#endif
    finish();
    return 0;
}
