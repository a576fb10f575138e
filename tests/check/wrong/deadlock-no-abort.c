// Rank 0 leaves a call out. The ranks give the communicator up and go on with a second
// one, but rank 1 does not abort the first: its old call waits for ever, and so does the
// new one, which comes after it on the stream. "All active ranks are required to call
// this function in order to abort the NCCL communicator successfully" (NCCL User Guide,
// ncclCommAbort).
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 1 has not given up communicator 1: ncclAllReduce(count 4, ncclInt32,
//     ncclSum) at @old waits
// expect: it was given up by rank 0 in ncclCommAbort at @abort
// expect: Hint: when one rank aborts or revokes a communicator, all others have to do
//     that too
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    ncclComm_t second = new_comm(MPI_COMM_WORLD);
    use_comm(comm); // else the first call itself connects the ranks, and waits
    use_comm(second);
    if (rank != 0)
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @old
#ifndef FIXED
    if (rank != 1)
#endif
        MUST(ncclCommAbort(comm)); // @abort
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof(int), stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, second, stream)); // @new
    MUST(cudaStreamSynchronize(stream));                                  // @sync
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    comm = second;
    finish();
    return 0;
}
