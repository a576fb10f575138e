// Rank 1 leaves the collective out, and the others do not wait for it but ask again and
// again whether it is done. The real program runs for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum),
//     operation 2 on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: ...cudaStreamQuery at @query for ncclAllReduce(count 4,
//     ncclInt32, ncclSum) at @allreduce, operation 2 on communicator 1; rank 1 has not
//     begun this operation
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish
// timeout: 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    use_comm(comm); // the first call would wait on the host
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    }
    while (cudaStreamQuery(stream) == cudaErrorNotReady) { // @query
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
