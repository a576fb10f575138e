// Two streams work on the two halves of one allocation at once. They share no byte, so no
// event is needed.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other_comm = new_comm(MPI_COMM_WORLD);
    cudaStream_t other = new_stream();
    int *buf = device_ints(2002, rank);
    MUST(ncclAllReduce(buf, buf, 1001, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(buf + 1001, buf + 1001, 1001, ncclInt32, ncclMax, other_comm,
                       other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 1001, sum_of_ranks());
    MUST(cudaStreamSynchronize(other));
    EXPECT_INTS(buf + 1001, 1001, nranks - 1);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(other));
    MUST(ncclCommDestroy(other_comm));
    finish();
    return 0;
}
