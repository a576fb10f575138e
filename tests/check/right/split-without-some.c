// ncclCommSplit with NCCL_SPLIT_NOCOLOR on rank 0, which gets no communicator; the others
// split their part again. The communicators get different amounts of use.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    ncclComm_t part = NULL, pair = NULL;
    MUST(ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 0, rank, &part, NULL));
    if (rank == 0) {
        EXPECT(part == NULL, 1);
    } else {
        MUST(ncclCommSplit(part, rank % 2, rank, &pair, NULL));
        for (int i = 0; i < 1 + rank % 2; i++) {
            MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, pair, stream));
        }
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, part, stream));
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    if (rank > 0) {
        MUST(ncclCommDestroy(pair));
        MUST(ncclCommDestroy(part));
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
