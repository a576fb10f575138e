// A buffer is freed while it is registered. NCCL keeps the registration, and finds it for
// whatever lies there next.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclMemFree frees a registered buffer
// expect: rank @any on @host: ncclMemFree at @free
// expect: registered by ncclCommRegister at @registers
#include "../check.h"

enum { COUNT = 1000 };

int main(void) {
    int *buf, ones[COUNT];
    void *handle;
    start();
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    MUST(ncclMemAlloc((void **)&buf, sizeof ones));
    MUST(ncclCommRegister(comm, buf, sizeof ones, &handle)); // @registers
    MUST(cudaMemcpyAsync(buf, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, nranks);
#ifdef FIXED
    MUST(ncclCommDeregister(comm, handle));
#endif
    MUST(ncclMemFree(buf)); // @free
#ifndef FIXED
    MUST(ncclCommDeregister(comm, handle));
#endif
    finish();
    return 0;
}
