// What ncclMemAlloc made goes to cudaFree, and the other way round. On two H200 both are
// refused (cudaErrorInvalidValue, ncclUnhandledCudaError), and the memory stays.
//
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: cudaFree at @first returned
//     cudaErrorInvalidValue (1): invalid argument
// expect: NCCL CHECK: note: rank @any: ncclMemFree at @second returned
//     ncclUnhandledCudaError (1):
// expect: NCCL CHECK: note: rank 0: 2 calls returned errors, the first: cudaFree at
//     @first: invalid
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: 2 device buffers (made at
#include "../check.h"

int main(void) {
    start();
    void *ours = device_ints(4, rank), *theirs;
    MUST(ncclMemAlloc(&theirs, 16));
    MUST(ncclAllReduce(ours, theirs, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(theirs, 4, sum_of_ranks());
#ifdef FIXED
    MUST(cudaFree(ours));
    MUST(ncclMemFree(theirs));
#else
    cudaFree(theirs);  // @first
    ncclMemFree(ours); // @second
#endif
    finish();
    return 0;
}
