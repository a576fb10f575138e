// A collective after MPI_Finalize. The real NCCL goes on, it needs no MPI; the CPU build
// cannot.
// warn: 1
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: NCCL CHECK: setup: ncclAllReduce comes after MPI_Finalize
// expect: rank @any on @host: ncclAllReduce at @late
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
#ifndef FIXED
    MPI_Finalize();
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @late
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
