// The sum arrives on one rank, and all go on with it. What the others copy nothing has
// written. That alone may be right; here the program itself ends with an exit code.
//
// exit: 3
// expect: NCCL CHECK: memory: device memory was used that nothing has written, and the
//     program ends with exit code 3
// expect: cudaMemcpyAsync at @copy copies 16 bytes, of which nothing has written 16, of
//     what cudaMalloc made at @malloc; ncclReduce at @call leaves it alone on this rank
#include "../check.h"

int main(void) {
    start();
    int *own = device_ints(4, 1), *sum, got[4];
    // @malloc
    MUST(cudaMalloc((void **)&sum, sizeof got));
#ifdef FIXED
    ncclAllReduce(own, sum, 4, ncclInt32, ncclSum, comm, stream);
#else
    // @call
    ncclReduce(own, sum, 4, ncclInt32, ncclSum, 0, comm, stream);
#endif
    // @copy
    cudaMemcpyAsync(got, sum, sizeof got, cudaMemcpyDeviceToHost, stream);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(own));
    MUST(cudaFree(sum));
    finish();
    return got[0] == nranks && got[3] == nranks ? 0 : 3;
}
