// The first all-reduce only opens the connections, the way Example 2 of NCCL's manual
// makes one: its buffers are as cudaMalloc gave them, and nobody looks at the sum.
#include "../check.h"

int main(void) {
    start();
    int *send, *recv;
    MUST(cudaMalloc((void **)&send, 1000 * sizeof(int)));
    MUST(cudaMalloc((void **)&recv, 1000 * sizeof(int)));
    MUST(ncclAllReduce(send, recv, 1000, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemset(recv, 0, 1000 * sizeof(int)));
    MUST(cudaStreamSynchronize(0));
    EXPECT_INTS(recv, 1000, 0);
    MUST(cudaFree(send));
    MUST(cudaFree(recv));
    use_comm(comm);
    finish();
    return 0;
}
