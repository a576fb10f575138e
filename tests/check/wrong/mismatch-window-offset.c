// Windows are registered as symmetric, and each rank's data lies at another place in its
// own.
//
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different offsets of symmetric windows at
//     operation 2 on communicator 1
// expect: rank 0 on @host: ncclAllReduce(count 512, ncclInt32, ncclSum) at @reduces,
//     0 bytes into its window
// expect: rank 1 on @host: ncclAllReduce(count 512, ncclInt32, ncclSum) at @reduces,
//     2048 bytes into its window
// expect: Hint: NCCL_WIN_COLL_SYMMETRIC promises that the buffers of all ranks lie at the
//     same offset
#include "../check.h"

enum { COUNT = 512 };

int main(void) {
    int *block, ones[COUNT];
    ncclWindow_t window;
    start();
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    MUST(ncclMemAlloc((void **)&block, (size_t)nranks * sizeof ones));
    MUST(ncclCommWindowRegister(comm, block, (size_t)nranks * sizeof ones, &window,
                                NCCL_WIN_COLL_SYMMETRIC));
    int *buf = block + rank * COUNT;
#ifdef FIXED
    buf = block;
#endif
    MUST(cudaMemcpy(buf, ones, sizeof ones, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream)); // @reduces
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, nranks);
    // In place each rank gives another part: that is how it is meant.
    MUST(ncclAllGather(block + rank * COUNT, block, COUNT, ncclInt32, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclMemFree(block));
    finish();
    return 0;
}
