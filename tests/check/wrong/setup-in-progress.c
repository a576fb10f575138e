// A communicator that does not block (blocking = 0) returns ncclInProgress for a group,
// and the stream is waited for before the program has asked whether its work is there.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: setup: cudaStreamSynchronize uses a stream that NCCL's work may not
//     be in yet
//
// expect: rank @any on @host: cudaStreamSynchronize at @wait
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
    MUST(cudaStreamSynchronize(stream)); // @wait
    EXPECT_INTS(into, 4, from);
    MUST(cudaFree(buf));
    MUST(cudaFree(into));
    MUST(cudaStreamDestroy(stream));
    may_come_later(ncclCommFinalize(comm));
    until_ready(comm);
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
