// Rank 0 frees memory that it has registered with CUDA, and never unregisters it: the GPU
// keeps the pages. Nothing uses it any more, so it is said at the end.
//
// rank: 0
// alone: exit code 0
// expect: NCCL CHECK: left behind: the program ends and has not released
//
// expect: rank 0: 1 pinned buffer (made at @registered)
// exit: 0
#include "../check.h"

enum { BYTES = 1 << 16 };

int main(void) {
    start();
    int *host = aligned_alloc(4096, BYTES), *buf;
    if (!host)
        return 1;
    memset(host, 0, BYTES);
    MUST(cudaMalloc((void **)&buf, BYTES));
    MUST(cudaHostRegister(host, BYTES, cudaHostRegisterDefault)); // @registered
    MUST(cudaMemcpyAsync(buf, host, BYTES, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
#ifndef FIXED
    if (rank != 0)
#endif
        MUST(cudaHostUnregister(host));
    free(host);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
