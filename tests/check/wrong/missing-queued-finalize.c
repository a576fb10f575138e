// The collective is started and nobody waits for it: MPI_Finalize comes while it is
// queued. In the real program the result may never arrive, or MPI is gone while NCCL
// works.
// expect: NCCL CHECK: missing: MPI_Finalize comes before queued operations are known to
//     be done
// expect: rank @any on @host: MPI_Finalize at @finalize
// expect: queued: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, operation 1
//     on communicator 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
#else
    MPI_Finalize(); // @finalize
#endif
    return 0;
}
