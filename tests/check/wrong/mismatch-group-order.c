// A group starts its calls together, but does not sort them: rank 1 has them in another
// order than the rest. The real NCCL hangs or hands out wrong data.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different reductions at operation 1 on
//     communicator 1
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclInt32, ncclMax) at @max
#include "../check.h"

int main(void) {
    start();
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    MUST(ncclGroupStart());
#ifndef FIXED
    if (rank == 1) {
        MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMax, comm, stream)); // @max
        MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, comm, stream));
    } else
#endif
    {
        MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, comm, stream)); // @sum
        MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMax, comm, stream));
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    finish();
    return 0;
}
