// A communicator is split off one that does not block, and is used without asking whether
// it is ready. Here it is by the time. In the real NCCL its handle is NULL until then.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator that is not ready
// expect: rank @any on @host: ncclAllReduce at @use
// expect: made by ncclCommSplit at @split, which does not wait for the others
#include "../check.h"

int main(void) {
    start_polled();
    ncclComm_t part = NULL;
    int *buf = device_ints(4, rank);
    ncclCommSplit(comm, 0, rank, &part, NULL); // @split
#ifdef FIXED
    until_ready(comm); // part is there when this one is ready again
#else
    sleep(1);
#endif
    ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, part, stream); // @use
    until_ready(part);
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    ncclCommFinalize(part);
    until_ready(part);
    MUST(ncclCommDestroy(part));
    ncclCommFinalize(comm);
    until_ready(comm);
    MUST(ncclCommDestroy(comm));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
