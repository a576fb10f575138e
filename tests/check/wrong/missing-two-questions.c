// Rank 1 leaves a collective out. The others ask the stream and the communicator in turn,
// as NCCL's manual shows it: the communicator is well each time, and nothing else moves.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 2 on
//     communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in cudaStreamQuery at @query for ncclAllReduce(count 4,
//     ncclInt32, ncclSum) at @allreduce
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish
// timeout: 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    ncclResult_t state;
    use_comm(comm); // the first call would wait on the host
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    }
    while (cudaStreamQuery(stream) == cudaErrorNotReady) // @query
        MUST(ncclCommGetAsyncError(comm, &state));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
