// NCCL needs no MPI once its communicator is there: MPI_Finalize may come before the last
// collective, and before everything is released.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    MPI_Finalize();
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm));
    return 0;
}
