// ncclCommDestroy while a collective is still queued: it "will call ncclCommFinalize
// internally", and that completes "all uncompleted operations" (NCCL User Guide,
// ncclCommDestroy). Two streams, a part of the communicator, and the stream that a call
// was on is gone already.
#include "../check.h"

enum { N = 3001 };

int main(void) {
    start();
    int *sum = device_ints(N, rank), *other = device_ints(N, 1);
    cudaStream_t second = new_stream(), third = new_stream();
    ncclComm_t part;
    MUST(ncclCommSplit(comm, rank % 2, rank, &part, NULL));
    MUST(ncclAllReduce(other, other, N, ncclInt32, ncclSum, part, third));
    MUST(cudaStreamSynchronize(third));
    MUST(cudaStreamDestroy(third));
    MUST(ncclAllReduce(other, other, N, ncclInt32, ncclMax, part, second));
    MUST(ncclCommDestroy(part));
    EXPECT_INTS(other, N, (nranks + 1 - rank % 2) / 2);
    MUST(ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream));
    MUST(ncclBroadcast(other, other, N, ncclInt32, 0, comm, second));
    MUST(ncclCommDestroy(comm));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(sum, N, sum_of_ranks());
    EXPECT_INTS(other, N, (nranks + 1) / 2);
    MUST(cudaFree(sum));
    MUST(cudaFree(other));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(second));
    MPI_Finalize();
    return 0;
}
