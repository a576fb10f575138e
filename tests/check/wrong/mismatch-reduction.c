// Rank 1 asks for the maximum, the rest for the sum. In the real NCCL each rank applies
// its own operator to the parts it reduces: wrong data and ncclSuccess.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different reductions at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclInt32, ncclMax) at @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    ncclRedOp_t op = ncclSum;
#else
    ncclRedOp_t op = rank == 1 ? ncclMax : ncclSum;
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, op, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
