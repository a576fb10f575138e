// The buffer was made for 4 bytes instead of 4 ints. With a GPU cudaMemcpy returns
// cudaErrorInvalidValue.
// rank: all
// alone: a call returns 1
// expect: NCCL CHECK: memory: cudaMemcpy runs past the end of its buffer
// expect: rank @any on @host: cudaMemcpy at @memcpy, 16 bytes from byte 0 of a buffer of
//     4 bytes
// expect: the buffer: device memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf;
    int values[4] = {1, 2, 3, 4};
#ifdef FIXED
    MUST(cudaMalloc((void **)&buf, sizeof values));
#else
    MUST(cudaMalloc((void **)&buf, 4)); // @malloc
#endif
    MUST(cudaMemcpy(buf, values, sizeof values, cudaMemcpyHostToDevice)); // @memcpy
    MUST(cudaFree(buf));
    finish();
    return 0;
}
