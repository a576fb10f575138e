// ncclCommAbort cleans up before anything has waited for the last all-reduce, and the
// result is read.
//
// expect: NCCL CHECK: memory: cudaMemcpy reads what an aborted call was to write
// expect: rank @any on @host: cudaMemcpy at @copy
// expect: aborted: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call, by ncclCommAbort
// expect: by ncclCommAbort at @abort
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), sum[4];
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(ncclCommAbort(comm)); // @abort
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(sum, buf, sizeof sum, cudaMemcpyDeviceToHost)); // @copy
    EXPECT(sum[3], sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
