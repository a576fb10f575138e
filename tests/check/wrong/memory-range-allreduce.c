// The count is in elements, not in bytes: four times too many run past the buffer. The
// real NCCL writes over whatever comes after it.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclAllReduce(count 16, ncclInt32, ncclSum) runs past the
//     end of its buffer
// expect: rank @any on @host: ncclAllReduce(count 16, ncclInt32, ncclSum) at @allreduce,
//     64 bytes from byte 0 of a buffer of 16 bytes
// expect: the buffer: device memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf;
    MUST(cudaMalloc((void **)&buf, 4 * sizeof(int))); // @malloc
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof(int), stream));
#ifdef FIXED
    size_t count = 4;
#else
    size_t count = 4 * sizeof(int);
#endif
    MUST(ncclAllReduce(buf, buf, count, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
