// Two communicators are destroyed in different orders, but in a group: its calls happen
// together.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, other, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MUST(ncclGroupStart());
    MUST(ncclCommDestroy(rank == 1 ? other : comm));
    MUST(ncclCommDestroy(rank == 1 ? comm : other));
    MUST(ncclGroupEnd());
    MPI_Finalize();
    return 0;
}
