// The host fills a cudaMalloc buffer in a loop, as if it were malloc's. With a GPU this
// ends with "Segmentation fault" and nothing more.
// rank: all
// alone: crash
// expect: NCCL CHECK: memory: the host writes to device memory
// expect: rank @any on @host: at @write, byte 0 of 4096 bytes of cudaMalloc at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf;
    MUST(cudaMalloc((void **)&buf, 1024 * sizeof(int))); // @malloc
#ifdef FIXED
    int *values = malloc(1024 * sizeof(int));
#else
    int *values = buf;
#endif
    for (int i = 0; i < 1024; i++) {
        values[i] = rank; // @write
    }
#ifdef FIXED
    const size_t bytes = 1024 * sizeof(int);
    MUST(cudaMemcpyAsync(buf, values, bytes, cudaMemcpyHostToDevice, stream));
    free(values);
#endif
    MUST(ncclAllReduce(buf, buf, 1024, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 1024, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
