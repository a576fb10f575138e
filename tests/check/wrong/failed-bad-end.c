// The root is none of the ranks. The call says so, nobody looks, and the program only
// finds at its end that the numbers are wrong.
//
// exit: 3
// expect: NCCL CHECK: failed: calls failed, and it was never asked why, and the program
//     ends with exit code 3
// expect: 1 call failed and nobody looked: ncclBroadcast at @call: ...root
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), got[4], root = nranks;
#ifdef FIXED
    root = nranks - 1;
#endif
    ncclBroadcast(buf, buf, 4, ncclInt32, root, comm, stream); // @call
    cudaMemcpyAsync(got, buf, sizeof got, cudaMemcpyDeviceToHost, stream);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return got[0] == nranks - 1 ? 0 : 3;
}
