// The collective is started and nobody waits for it: the program ends while it is
// queued. In the real program the result may never arrive.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: missing: the end of the program comes before queued operations are
//     known to be done
// expect: rank @any on @host: the end of the program
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
    MPI_Finalize();
#endif
    return 0;
}
