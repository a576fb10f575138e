// A flag of one byte, and behind it the gradients, in one buffer: they begin at an odd
// address. A GPU can't compute with numbers that lie so.
//
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is not aligned to its elements
//
// expect: rank @any on @host: ncclAllReduce(count 100, ncclFloat32, ncclSum) at
//     @gradients
//
// expect: the address: byte 1 of a buffer of 404 bytes made at @made
//
// expect: computes with numbers of 4 bytes only where the address is a multiple of 4;
#include "../check.h"

enum { N = 100 };

int main(void) {
    start();
    char *both;
    MUST(cudaMalloc((void **)&both, 4 + N * sizeof(float))); // @made
    MUST(cudaMemsetAsync(both, 0, 4 + N * sizeof(float), stream));
#ifdef FIXED
    char *gradients = both + 4;
#else
    char *gradients = both + 1;
#endif
    MUST(ncclAllReduce(both, both, 1, ncclUint8, ncclMax, comm, stream));
    // @gradients
    MUST(ncclAllReduce(gradients, gradients, N, ncclFloat, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(both));
    finish();
    return 0;
}
