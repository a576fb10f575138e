// Two collectives on two communicators and two streams write the same buffer, and no
// event orders them. On a GPU the last one to finish wins.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank @any on @host: ncclBroadcast(count 4, ncclInt32, root 0) at @broadcast
//     ... what
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other_comm = new_comm(MPI_COMM_WORLD);
    cudaStream_t other = new_stream();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, other_comm, other)); // @broadcast
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(other));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(other));
    MUST(ncclCommDestroy(other_comm));
    finish();
    return 0;
}
