// The buffer is freed while the collective is queued. cudaFree "may perform implicit
// synchronization" (CUDA Runtime API): then it waits, inside, for the other ranks. Or the
// kernel writes into memory that is somebody else's by then.
// warn: 0
// off: 0
// expect: NCCL CHECK: race: cudaFree frees a buffer that a queued operation still uses
// expect: rank @any on @host: cudaFree at @free
// expect: queued: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, operation 1
//     on communicator 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(cudaFree(buf)); // @free
    MUST(cudaStreamSynchronize(stream));
    finish();
    return 0;
}
