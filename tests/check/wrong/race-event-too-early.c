// The host waits for an event that was recorded before the collective, so it waits for
// nothing that matters. On a GPU this reads the old data, or half of the new.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: a buffer is used while a queued operation still uses it
// expect: rank @any on @host: cudaMemcpy at @memcpy reads what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce writes
#include "../check.h"

int main(void) {
    start();
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    int *buf = device_ints(4, rank);
    int result[4];
#ifndef FIXED
    MUST(cudaEventRecord(done, stream));
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaEventRecord(done, stream));
#endif
    MUST(cudaEventSynchronize(done));
    MUST(cudaMemcpy(result, buf, sizeof result, cudaMemcpyDeviceToHost)); // @memcpy
    EXPECT(result[0], sum_of_ranks());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(cudaEventDestroy(done));
    finish();
    return 0;
}
