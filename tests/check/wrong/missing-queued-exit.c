// The program returns from main while the collective is queued: without MPI_Finalize and
// without waiting. The real program ends with the result not there.
// rank: all
// alone: exit code 1
// expect: NCCL CHECK: missing: the end of the program comes before queued operations are
//     known to be done
// expect: rank @any on @host
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
#endif
    return 0;
}
