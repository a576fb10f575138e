// A buffer is never freed. The real CUDA says nothing; a program that does this in a loop
// runs out of device memory.
// rank: all
// alone: exit code 0
// exit: 0
// warn: 0
// off: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: @all: 1 device buffer (made at @malloc)
#include "../check.h"

int main(void) {
    start();
    int *buf;
    MUST(cudaMalloc((void **)&buf, 1024 * sizeof(int))); // @malloc
#ifdef FIXED
    MUST(cudaFree(buf));
#endif
    finish();
    return 0;
}
