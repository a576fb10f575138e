// The second half of a buffer is summed. Its start is counted in bytes, but added to a
// pointer to int, which counts ints.
// rank: all
// alone: a call returns 1
// expect: NCCL CHECK: memory: sendbuff of ncclAllReduce begins after the end of a buffer
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum
// expect: the address: 64 bytes after the start of a buffer of 32 bytes made at
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(8, rank);
#ifdef FIXED
    int *half = buf + 4;
#else
    int *half = buf + 4 * sizeof *buf;
#endif
    MUST(ncclAllReduce(half, half, 4, ncclInt32, ncclSum, comm, stream)); // @sum
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(half, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
