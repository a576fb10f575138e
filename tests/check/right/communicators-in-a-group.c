// Groups with calls on two communicators. On one stream all ranks begin with the same
// communicator; where each has a stream of its own, rank 1 begins with the other one. One
// of the communicators may also have the first and the last call.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    cudaStream_t side = new_stream();
    int *a = device_ints(4, 1);
    int *b = device_ints(4, 1);
    int *c = device_ints(4, 1);
    for (int round = 0; round < 2; round++) {
        MUST(ncclGroupStart());
        MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, comm, stream));
        MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMax, other, stream));
        MUST(ncclAllReduce(c, c, 4, ncclInt32, ncclMax, comm, stream));
        MUST(ncclGroupEnd());
        MUST(cudaStreamSynchronize(stream));
        MUST(ncclGroupStart());
        if (rank == 1) {
            MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMax, other, side));
        }
        MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, comm, stream));
        if (rank != 1) {
            MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMax, other, side));
        }
        MUST(ncclGroupEnd());
        MUST(cudaStreamSynchronize(side));
        MUST(cudaStreamSynchronize(stream));
    }
    EXPECT_INTS(a, 4, 1);
    EXPECT_INTS(b, 4, 1);
    EXPECT_INTS(c, 4, 1);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
    MUST(cudaStreamDestroy(side));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
