// memcpy instead of cudaMemcpy. With a GPU this ends with "Segmentation fault" and
// nothing more. The address that faults lies inside the C library, the line to name in
// the program.
// rank: all
// alone: crash
// expect: NCCL CHECK: memory: the host writes to device memory
// expect: rank @any on @host: at @memcpy, byte @any of 65536 bytes of cudaMalloc at
//     @malloc
#include "../check.h"

enum { COUNT = 16384 };

static int values[COUNT];

int main(void) {
    start();
    int *buf;
    MUST(cudaMalloc((void **)&buf, COUNT * sizeof(int))); // @malloc
    size_t bytes = COUNT * sizeof(int);
#ifdef FIXED
    MUST(cudaMemcpy(buf, values, bytes, cudaMemcpyHostToDevice));
#else
    memcpy(buf, values, bytes); // @memcpy
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
