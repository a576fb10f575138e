// NCCL gets a malloc pointer. The real NCCL ends with "illegal memory access" at the next
// synchronisation, which names neither the call nor the pointer.
// rank: all
// alone: a call returns 700
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is not memory that a GPU can use
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: cudaMalloc
#include "../check.h"

int main(void) {
    start();
    int *values = calloc(4, sizeof(int));
    int *device = device_ints(4, 0);
#ifdef FIXED
    int *buf = device;
#else
    int *buf = values;
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(device));
    free(values);
    finish();
    return 0;
}
