// A communicator that does not block (blocking = 0) returns ncclInProgress for a group,
// and is used again before the program has asked whether the first call is done (NCCL
// User Guide, ncclCommGetAsyncError: no other function of NCCL until then).
// rank: all
// alone: a call returns 4
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator that is still at work
// expect: rank @any on @host: ncclAllReduce at @again
// expect: ncclSend at @send has returned ncclInProgress: communicator 1 does not block
#include "../check.h"

int main(void) {
    start_polled();
    int *buf = device_ints(4, rank), *into = device_ints(4, -1);
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    may_come_later(ncclGroupStart());
    may_come_later(ncclRecv(into, 4, ncclInt32, from, comm, stream));
    may_come_later(ncclSend(buf, 4, ncclInt32, to, comm, stream)); // @send
    may_come_later(ncclGroupEnd());
#ifdef FIXED
    until_ready(comm);
#endif
    // @again
    may_come_later(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    until_ready(comm);
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(into, 4, from);
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaFree(into));
    MUST(cudaStreamDestroy(stream));
    may_come_later(ncclCommFinalize(comm));
    until_ready(comm);
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
