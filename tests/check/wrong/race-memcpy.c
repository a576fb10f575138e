// cudaMemcpy right after the collective, with no synchronisation. The stream is a
// non-blocking one, so cudaMemcpy does not wait for it: on a GPU this reads the old data,
// or half of the new. (Here the other ranks come only when rank 0 has copied.)
// rank: all
// alone: wrong data
// warn: 2
// off: 2
// expect: NCCL CHECK: race: a buffer is used while a queued operation still uses it
// expect: rank @any on @host: cudaMemcpy at @memcpy reads what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce writes
// expect: 16 bytes of device memory
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int result[4];
    use_comm(comm); // so that no call waits for NCCL to connect
#ifndef FIXED
    if (rank > 0)
        MPI_Barrier(MPI_COMM_WORLD);
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(cudaMemcpy(result, buf, sizeof result, cudaMemcpyDeviceToHost)); // @memcpy
#ifndef FIXED
    if (rank == 0)
        MPI_Barrier(MPI_COMM_WORLD);
#endif
    EXPECT(result[0], sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
