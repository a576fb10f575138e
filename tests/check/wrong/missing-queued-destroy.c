// The communicator is destroyed while a collective on it is still queued. The real NCCL
// may free what the running kernel uses.
// expect: NCCL CHECK: missing: ncclCommDestroy comes before queued operations are known
//     to be done
// expect: rank @any on @host: ncclCommDestroy at @destroy
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
    MUST(ncclCommDestroy(comm)); // @destroy
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
