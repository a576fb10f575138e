// Two split communicators with a stream each, in one group: named in the same order by
// all ranks.
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
        MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, same, stream));
        MUST(ncclBroadcast(b, b, 4, ncclInt32, 0, turned, other));
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
