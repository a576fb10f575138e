// Memory that cudaMallocAsync makes on one stream is used on another one, which does not
// know of it. "The returned memory can be accessed in stream order" (CUDA C++ Programming
// Guide, "Stream Ordered Memory Allocator").
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: memory is used on a stream that does not know of it yet
// expect: rank @any on @host: cudaMemsetAsync at @use writes what
// expect: cudaMallocAsync at @made makes on its stream
#include "../check.h"

int main(void) {
    start();
    int *buf;
    cudaStream_t other = new_stream();
    cudaEvent_t made;
    MUST(cudaEventCreate(&made));
    MUST(cudaMallocAsync((void **)&buf, 4 * sizeof *buf, other)); // @made
    MUST(cudaEventRecord(made, other));
#ifdef FIXED
    MUST(cudaStreamWaitEvent(stream, made, 0));
#endif
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof *buf, stream)); // @use
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    MUST(cudaEventDestroy(made));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
