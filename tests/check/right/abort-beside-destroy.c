// One rank aborts the communicator, the others destroy it: they do not wait for that one.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    if (rank == 1) {
        MUST(ncclCommAbort(comm));
    } else {
        MUST(ncclCommDestroy(comm));
    }
    MPI_Finalize();
    return 0;
}
