// Rank 1 copies into rank 0's memory, a barrier, and rank 0 reads it: but rank 1 has not
// waited for its copy before the barrier. On GPUs rank 0 has the old values, or the new
// ones by luck.
// expect: NCCL CHECK: race: two ranks use the same memory at the same time
// expect: rank 1 on @host: cudaMemcpyAsync at @write writes bytes 0 to 15
// expect: rank 0 on @host: cudaMemcpyAsync at @read reads bytes 0 to 15
#include "../check.h"

int main(void) {
    start();
    int *mine = device_ints(4, rank), *buf = device_ints(4, 7), *open = NULL, host[4];
    cudaIpcMemHandle_t handle;
    MUST(cudaIpcGetMemHandle(&handle, buf));
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        MUST(
            cudaIpcOpenMemHandle((void **)&open, handle, cudaIpcMemLazyEnablePeerAccess));
        // @write
        MUST(cudaMemcpyAsync(open, mine, sizeof host, cudaMemcpyDeviceToDevice, stream));
#ifdef FIXED
        MUST(cudaStreamSynchronize(stream));
#endif
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        // @read
        MUST(cudaMemcpyAsync(host, buf, sizeof host, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
        EXPECT(host[3], 1);
#endif
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(cudaStreamSynchronize(stream));
    if (open)
        MUST(cudaIpcCloseMemHandle(open));
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return 0;
}
