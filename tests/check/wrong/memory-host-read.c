// The host reads a cudaMalloc pointer. With a GPU this ends with "Segmentation fault" and
// nothing more.
// rank: all
// alone: crash
// warn: 1
// expect: NCCL CHECK: memory: the host reads device memory
// expect: rank @any on @host: at @read, byte 12 of 16 bytes of cudaMalloc at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf;
    int first[4] = {42, 42, 42, 42};
    MUST(cudaMalloc((void **)&buf, 4 * sizeof(int))); // @malloc
    MUST(cudaMemcpy(buf, first, sizeof first, cudaMemcpyHostToDevice));
#ifdef FIXED
    MUST(cudaMemcpy(first, buf, sizeof first, cudaMemcpyDeviceToHost));
    EXPECT(first[3], 42);
#else
    EXPECT(buf[3], 42); // @read
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
