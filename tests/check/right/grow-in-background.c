// A communicator with blocking = 0 grows, and the new rank gets memory that it has not
// written itself by a broadcast.
// ranks: 2 3 4
#include "../check.h"

int main(void) {
    start();
    ncclUniqueId id;
    ncclComm_t old = all_but_last(&id), grown = grow_polled(old, &id);
    int *from = device_ints(4, 7), *weights;
    MUST(cudaMalloc((void **)&weights, 8 * sizeof *weights));
    if (rank == 0)
        MUST(cudaMemcpyAsync(weights, from, 4 * sizeof *weights, cudaMemcpyDeviceToDevice,
                             stream));
    settle(grown, ncclBroadcast(weights, weights, 4, ncclInt32, 0, grown, stream));
    MUST(cudaMemcpyAsync(weights + 4, weights, 4 * sizeof *weights,
                         cudaMemcpyDeviceToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(weights + 4, 4, 7);
    MUST(ncclCommAbort(grown));
    if (old)
        MUST(ncclCommDestroy(old));
    MUST(cudaFree(weights));
    MUST(cudaFree(from));
    finish();
    return 0;
}
