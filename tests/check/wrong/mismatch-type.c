// Rank 1 sends its ints as floats. The sizes agree, so the real NCCL sums bit patterns
// and reports success.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different data types at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclFloat32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    ncclDataType_t type = ncclInt32;
#else
    ncclDataType_t type = rank == 1 ? ncclFloat32 : ncclInt32;
#endif
    MUST(ncclAllReduce(buf, buf, 4, type, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
