// Two split communicators with a stream each. Inside a group all calls start together, so
// odd ranks may name them in the other order.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t same, turned;
    MUST(ncclCommSplit(comm, 0, rank, &same, NULL));
    MUST(ncclCommSplit(comm, 0, nranks - rank, &turned, NULL));
    cudaStream_t other = new_stream();
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    for (int round = 0; round < 5; round++) {
        MUST(ncclGroupStart());
        if (rank % 2 == 0) {
            MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, same, stream));
            MUST(ncclBroadcast(b, b, 4, ncclInt32, 0, turned, other));
        } else {
            MUST(ncclBroadcast(b, b, 4, ncclInt32, 0, turned, other));
            MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, same, stream));
        }
        MUST(ncclGroupEnd());
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(other));
    EXPECT_INTS(a, 4, nranks - 1);
    EXPECT_INTS(b, 4, nranks - 1);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaStreamDestroy(other));
    MUST(ncclCommDestroy(same));
    MUST(ncclCommDestroy(turned));
    finish();
    return 0;
}
