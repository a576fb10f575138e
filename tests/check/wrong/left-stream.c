// A stream is never destroyed. The real CUDA says nothing.
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: @all: 1 stream (made at @stream)
#include "../check.h"

int main(void) {
    start();
    cudaStream_t other;
    MUST(cudaStreamCreate(&other)); // @stream
#ifdef FIXED
    MUST(cudaStreamDestroy(other));
#endif
    finish();
    return 0;
}
