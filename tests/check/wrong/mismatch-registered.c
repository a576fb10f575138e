// Only one rank's buffer is registered. The manual: then those of all ranks must be.
//
// expect: NCCL CHECK: mismatch: the ranks do not all give registered buffers at operation
//     1 on communicator 1
//
// expect: rank 0 on @host: ncclAllReduce(count 1000, ncclInt32, ncclSum) at @sums,
//     registered
// expect: rank 1 on @host: ncclAllReduce(count 1000, ncclInt32, ncclSum) at @sums
// expect: Hint: if one rank's buffer is registered (ncclCommRegister), those of all ranks
//     must be
#include "../check.h"

enum { COUNT = 1000 };

int main(void) {
    int *buf, ones[COUNT];
    void *handle = NULL;
    start();
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    MUST(ncclMemAlloc((void **)&buf, sizeof ones));
#ifdef FIXED
    MUST(ncclCommRegister(comm, buf, sizeof ones, &handle));
#else
    if (rank == 0)
        MUST(ncclCommRegister(comm, buf, sizeof ones, &handle));
#endif
    MUST(cudaMemcpyAsync(buf, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream)); // @sums
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, nranks);
    if (handle)
        MUST(ncclCommDeregister(comm, handle));
    MUST(ncclMemFree(buf));
    finish();
    return 0;
}
