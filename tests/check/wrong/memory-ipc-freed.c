// Rank 0 gives memory back which rank 1 still has open and copies from. The manual calls
// that undefined behaviour (cudaIpcOpenMemHandle).
// expect: NCCL CHECK: memory: cudaFree frees what another rank still has open
// expect: rank 0 on @host: cudaFree at @free
// expect: the buffer: 16 bytes of rank 0's device memory, made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *mine = device_ints(4, rank), *buf, *open = NULL;
    cudaIpcMemHandle_t handle;
    MUST(cudaMalloc((void **)&buf, 4 * sizeof *buf)); // @malloc
    MUST(cudaMemcpy(buf, mine, 4 * sizeof *buf, cudaMemcpyDeviceToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaIpcGetMemHandle(&handle, buf));
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MUST(
            cudaIpcOpenMemHandle((void **)&open, handle, cudaIpcMemLazyEnablePeerAccess));
    MPI_Barrier(MPI_COMM_WORLD); // it has been opened
#ifndef FIXED
    if (rank == 0)
        MUST(cudaFree(buf)); // @free
    MPI_Barrier(MPI_COMM_WORLD);
#endif
    if (rank == 1) {
        MUST(cudaMemcpyAsync(mine, open, 4 * sizeof *buf, cudaMemcpyDeviceToDevice,
                             stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaIpcCloseMemHandle(open));
    }
#ifdef FIXED
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MUST(cudaFree(buf));
#endif
    if (rank > 0)
        MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return 0;
}
