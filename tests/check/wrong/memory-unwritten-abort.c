// Counts are read that no call has written, since it was left out: they make no sense,
// and the program gives up.
// rank: all
// alone: exit code 3
// exit: 3
// expect: NCCL CHECK: note: before MPI_Abort rank 0 has copied device memory that
//     nothing had written: cudaMemcpy at @copy, of what cudaMalloc made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *counts, host = -1, *buf = device_ints(1, 1);
    MUST(cudaMalloc((void **)&counts, sizeof *counts)); // @malloc
#ifdef FIXED
    MUST(ncclAllReduce(buf, counts, 1, ncclInt32, ncclSum, comm, stream));
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&host, counts, sizeof host, cudaMemcpyDeviceToHost)); // @copy
    if (host != nranks && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MUST(cudaFree(counts));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
