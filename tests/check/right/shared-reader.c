// Two streams and the host read the same buffer at the same time. Nobody writes it, so
// nothing has to order them.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other_comm = new_comm(MPI_COMM_WORLD);
    cudaStream_t other = new_stream();
    int *from = device_ints(100, rank);
    int *sum = device_ints(100, -1);
    int *max = device_ints(100, -1);
    MUST(ncclAllReduce(from, sum, 100, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(from, max, 100, ncclInt32, ncclMax, other_comm, other));
    EXPECT_INTS(from, 100, rank);
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(sum, 100, sum_of_ranks());
    EXPECT_INTS(max, 100, nranks - 1);
    MUST(cudaFree(from));
    MUST(cudaFree(sum));
    MUST(cudaFree(max));
    MUST(cudaStreamDestroy(other));
    MUST(ncclCommDestroy(other_comm));
    finish();
    return 0;
}
