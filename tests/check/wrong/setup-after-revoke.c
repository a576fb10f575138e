// All ranks revoke the communicator and go on with it, instead of making a new one of it.
// rank: all
// alone: a call returns 5
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator after it was revoked
// expect: rank @any on @host: ncclAllReduce at @call
// expect: communicator 1, made by ncclCommInitRank at ..., was revoked at @revoke
#include "../check.h"

int main(void) {
    start();
    ncclComm_t again = comm;
    int *buf = device_ints(4, 1);
    use_comm(comm);
    MUST(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)); // @revoke
#ifdef FIXED
    MUST(ncclCommSplit(comm, 0, rank, &again, NULL));
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, again, stream)); // @call
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    if (again != comm)
        MUST(ncclCommDestroy(again));
    finish();
    return 0;
}
