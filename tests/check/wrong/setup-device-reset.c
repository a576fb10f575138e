// The device is reset first, and the communicator destroyed after it: what NCCL had
// there is gone. NCCL 2.28.3 warns of an invalid handle, and returns no error; 2.32.3
// crashes.
//
// rank: all
// alone: crash
// expect: NCCL CHECK: setup: ncclCommDestroy uses a communicator after it was destroyed
// expect: rank @any on @host: ncclCommDestroy at @destroy
// expect: communicator 1, made by ncclCommInitRank at ..., was destroyed by
//     cudaDeviceReset at @reset
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
#ifdef FIXED
    MUST(ncclCommDestroy(comm));
    MUST(cudaDeviceReset());
#else
    MUST(cudaDeviceReset());     // @reset
    MUST(ncclCommDestroy(comm)); // @destroy
#endif
    MPI_Finalize();
    return 0;
}
