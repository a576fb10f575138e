// Ranks release their things in different orders, with a pause in between. What all have
// finalized, each may destroy when it likes.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, other, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(ncclCommFinalize(comm));
    MUST(ncclCommFinalize(other));
    if (rank % 2 == 0) {
        MUST(ncclCommDestroy(other));
        usleep(100000);
        MUST(ncclCommDestroy(comm));
        MUST(cudaStreamDestroy(stream));
        MUST(cudaFree(buf));
    } else {
        MUST(cudaFree(buf));
        MUST(cudaStreamDestroy(stream));
        MUST(ncclCommDestroy(comm));
        MUST(ncclCommDestroy(other));
    }
    MPI_Finalize();
    return 0;
}
