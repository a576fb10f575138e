// recvbuff of an all-gather needs room for the parts of all ranks, and there is room for
// one only. The real NCCL writes over whatever comes after it.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclAllGather(count 4, ncclInt32) runs past the end of its
//     buffer
// expect: rank @any on @host: ncclAllGather(count 4, ncclInt32) at @allgather, ... bytes
//     from byte 0 of a buffer of 16 bytes
// expect: the buffer: device memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *mine = device_ints(4, rank);
    int *all;
#ifdef FIXED
    MUST(cudaMalloc((void **)&all, nranks * 4 * sizeof(int)));
#else
    MUST(cudaMalloc((void **)&all, 4 * sizeof(int))); // @malloc
#endif
    MUST(ncclAllGather(mine, all, 4, ncclInt32, comm, stream)); // @allgather
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(mine));
    MUST(cudaFree(all));
    finish();
    return 0;
}
