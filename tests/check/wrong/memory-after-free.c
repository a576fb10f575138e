// The buffer is used after cudaFree. The real NCCL works on memory that may be somebody
// else's by then.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce was freed before
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: freed at @free
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    MUST(cudaFree(buf)); // @free
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    MUST(cudaFree(buf));
#endif
    finish();
    return 0;
}
