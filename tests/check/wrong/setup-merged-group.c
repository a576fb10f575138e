// One group makes a second communicator and sums up over the first. The manual allows
// groups of one kind or the other.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: setup: one group makes a communicator and calls another
// expect: rank @any on @host: ncclCommInitRank at @makes
// expect: in the same group: ncclAllReduce(count 10, ncclInt32, ncclSum) at @sums
#include "../check.h"

int main(void) {
    start();
    ncclComm_t second;
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    int *buf = device_ints(10, 1);
    MUST(ncclGroupStart());
    MUST(ncclCommInitRank(&second, nranks, id, rank)); // @makes
#ifdef FIXED
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
#endif
    MUST(ncclAllReduce(buf, buf, 10, ncclInt32, ncclSum, comm, stream)); // @sums
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 10, nranks);
    MUST(cudaFree(buf));
    MUST(ncclCommDestroy(second));
    finish();
    return 0;
}
