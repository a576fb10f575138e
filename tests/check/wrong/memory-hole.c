// Half of a buffer comes from the neighbour, and all of it is added up: the other half is
// whatever was there. It is said, and the program goes on, since a part of a buffer may
// be meant to hold nothing.
//
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is device memory that nothing has
//     written, in part
//
// expect: rank @any on @host: ncclAllReduce(count 400, ncclInt32, ncclSum) at @sum
//
// expect: nothing has written 800 of the 1600 bytes
//
// exit: 0
#include "../check.h"

enum { N = 400 };

int main(void) {
    start();
    int *own = device_ints(N, 1), *all, host[N], next = (rank + 1) % nranks,
        before = (rank + nranks - 1) % nranks;
    MUST(cudaMalloc((void **)&all, sizeof host));
#ifdef FIXED
    MUST(cudaMemcpyAsync(all, own, sizeof host / 2, cudaMemcpyDeviceToDevice, stream));
#else
    if (rank > 0)
        MUST(cudaMemsetAsync(all, 0, sizeof host / 2, stream));
#endif
    MUST(ncclGroupStart());
    MUST(ncclSend(own, N / 2, ncclInt32, next, comm, stream));
    MUST(ncclRecv(all + N / 2, N / 2, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
    MUST(ncclAllReduce(all, all, N, ncclInt32, ncclSum, comm, stream)); // @sum
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(host, all, sizeof host, cudaMemcpyDeviceToHost));
#ifdef FIXED
    EXPECT(host[0] + host[N - 1], 2 * nranks);
#endif
    MUST(cudaFree(all));
    MUST(cudaFree(own));
    finish();
    return 0;
}
