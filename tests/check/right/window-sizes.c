// Each rank registers as much of its block as it happens to use: "size may differ across
// ranks" (NCCL User Guide, ncclCommWindowRegister).
#include "../check.h"

int main(void) {
    int *block, ones[1000];
    size_t bytes = 65536, mine;
    ncclWindow_t window;
    start();
    for (int i = 0; i < 1000; i++)
        ones[i] = 1;
    mine = rank == 1 ? bytes / 2 : bytes;
    MUST(ncclMemAlloc((void **)&block, bytes));
    MUST(cudaMemcpyAsync(block, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
    const int flags = NCCL_WIN_COLL_SYMMETRIC;
    MUST(ncclCommWindowRegister(comm, block, mine, &window, flags));
    MUST(ncclAllReduce(block, block, 1000, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(block, 1000, nranks);
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclMemFree(block));
    finish();
    return 0;
}
