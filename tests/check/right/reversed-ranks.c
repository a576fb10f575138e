// The communicator counts the ranks from the other end: NCCL's rank is not MPI's.
#include "../check.h"

int main(void) {
    start();
    ncclUniqueId id;
    if (rank == nranks - 1) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, nranks - 1, MPI_COMM_WORLD);
    ncclComm_t reversed;
    MUST(ncclCommInitRank(&reversed, nranks, id, nranks - 1 - rank));
    int *buf = device_ints(4, rank);
    int *all = device_ints(nranks, -1);
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, reversed, stream));
    MUST(ncclAllGather(buf, all, 1, ncclInt32, reversed, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    EXPECT_INTS(all, nranks, nranks - 1);
    MUST(cudaFree(buf));
    MUST(cudaFree(all));
    MUST(ncclCommDestroy(reversed));
    finish();
    return 0;
}
