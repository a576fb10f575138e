// Rank 1 leaves an all-reduce out. The others do not wait for their stream: they destroy
// the communicator, which completes what is queued, and so waits for ever.
//
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 2 on
//     communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommDestroy at @destroy for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), takes_part = rank != 1;
    use_comm(comm); // the first call would wait on the host
#ifdef FIXED
    takes_part = 1;
#endif
    if (takes_part)
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(ncclCommDestroy(comm));                                            // @destroy
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
