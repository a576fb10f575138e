// Each rank registers as much of its block as it happens to use. The manual wants windows
// of one size.
//
// expect: NCCL CHECK: mismatch: the ranks give different sizes at operation 1 on
//     communicator 1
// expect: rank 0 on @host: ncclCommWindowRegister(65536 bytes) at @register
// expect: rank 1 on @host: ncclCommWindowRegister(32768 bytes) at @register
#include "../check.h"

int main(void) {
    int *block, ones[1000];
    size_t bytes = 65536, mine = bytes;
    ncclWindow_t window;
    start();
    for (int i = 0; i < 1000; i++)
        ones[i] = 1;
#ifndef FIXED
    mine = rank == 1 ? bytes / 2 : bytes;
#endif
    MUST(ncclMemAlloc((void **)&block, bytes));
    MUST(cudaMemcpyAsync(block, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
    const int flags = NCCL_WIN_COLL_SYMMETRIC;
    MUST(ncclCommWindowRegister(comm, block, mine, &window, flags)); // @register
    MUST(ncclAllReduce(block, block, 1000, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(block, 1000, nranks);
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclMemFree(block));
    finish();
    return 0;
}
