// The communicator is used after ncclCommDestroy. The real NCCL reads freed memory: a
// crash, or ncclInvalidArgument.
// rank: all
// alone: a call returns 4
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator after it was destroyed
// expect: rank @any on @host: ncclAllReduce... at @allreduce
// expect: communicator 1, made by ncclCommInitRank at check.h:..., was destroyed at
//     @destroy
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    MUST(ncclCommDestroy(comm)); // @destroy
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    MUST(ncclCommDestroy(comm));
#endif
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
