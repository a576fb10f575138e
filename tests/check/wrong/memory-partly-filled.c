// On rank 0 cudaMemcpy is given a number of elements where it counts bytes: a quarter of
// the buffer is filled, and the rest of the sums is whatever was there. It is said, and
// the program goes on, since a part of a buffer may be meant to hold nothing.
//
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is device memory that nothing has
//     written, but for its beginning
// expect: rank 0 on @host: ncclAllReduce(count 64, ncclInt32, ncclSum) at @call
// expect: Hint: 64 bytes were written, and 64 elements are sent, of 4 bytes each
// exit: 0
#include "../check.h"

enum { N = 64 };

int main(void) {
    start();
    int host[N] = {0}, *buf;
    MUST(cudaMalloc((void **)&buf, N * sizeof *buf));
#ifdef FIXED
    const size_t bytes = N * sizeof *buf;
#else
    const size_t bytes = rank == 0 ? N : N * sizeof *buf;
#endif
    MUST(cudaMemcpy(buf, host, bytes, cudaMemcpyHostToDevice));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(host, buf, N * sizeof *buf, cudaMemcpyDeviceToHost));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
