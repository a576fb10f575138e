// Each rank sends its part of a buffer, and the last part runs one element past the end:
// only the last rank is wrong. The real NCCL sends whatever comes after the buffer.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclAllGather(count 4, ncclInt32) runs past the end of its
//     buffer
// expect: rank @last on @host: ncclAllGather(count 4, ncclInt32) at @allgather, 16 bytes
//     from byte ...
// expect 3: ... from byte 36 of a buffer of 48 bytes
// expect: the buffer: device memory made at @malloc
// expect: A GPU reads or writes beyond it
#include "../check.h"

int main(void) {
    start();
    int *parts;
    MUST(cudaMalloc((void **)&parts, 4 * nranks * sizeof(int))); // @malloc
    MUST(cudaMemsetAsync(parts, 0, 4 * nranks * sizeof(int), stream));
    int *all = device_ints(4 * nranks, 0);
#ifdef FIXED
    int *mine = parts + 4 * rank;
#else
    int *mine = parts + 4 * rank + 1;
#endif
    MUST(ncclAllGather(mine, all, 4, ncclInt32, comm, stream)); // @allgather
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(parts));
    MUST(cudaFree(all));
    finish();
    return 0;
}
