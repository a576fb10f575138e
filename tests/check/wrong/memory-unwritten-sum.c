// Memory from cudaMalloc is summed, and the host looks at the result. It holds anything:
// nobody has written it.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce is device memory that nothing has
//     written
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum
// expect: made at @made
#include "../check.h"

int main(void) {
    start();
    int *from, *to = device_ints(4, 0);
    MUST(cudaMalloc((void **)&from, 4 * sizeof *from)); // @made
#ifdef FIXED
    MUST(cudaMemsetAsync(from, 0, 4 * sizeof *from, stream));
#endif
    MUST(ncclAllReduce(from, to, 4, ncclInt32, ncclSum, comm, stream)); // @sum
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(to, 4, 0);
    MUST(cudaFree(from));
    MUST(cudaFree(to));
    finish();
    return 0;
}
