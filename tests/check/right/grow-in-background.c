// A communicator with blocking = 0 grows, and the new rank gets memory that it has not
// written itself by a broadcast.
// ranks: 2 3 4
#include "../check.h"

int main(void) {
    start();
    const int newest = nranks - 1;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    ncclResult_t begun;
    ncclComm_t old = NULL, grown = NULL;
    MUST(ncclCommSplit(comm, rank == newest ? NCCL_SPLIT_NOCOLOR : 0, rank, &old, NULL));
    if (rank == 0)
        MUST(ncclCommGetUniqueId(old, &id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == newest)
        begun = ncclCommGrow(NULL, nranks, &id, rank, &grown, &config);
    else
        begun = ncclCommGrow(old, nranks, rank == 0 ? &id : NULL, -1, &grown, &config);
    if (old)
        settle(old, begun);
    settle(grown, begun);
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
