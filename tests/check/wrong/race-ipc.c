// Rank 1 copies into rank 0's memory, which it has opened, and rank 0 reads it: each has
// waited for its own copy, and neither for the other. On GPUs rank 0 has the old values,
// or the new ones by luck.
// expect: NCCL CHECK: race: two ranks use the same memory, and nothing between them puts
//     that in order
// expect: rank 1 on @host: cudaMemcpyAsync at @write writes bytes 0 to 15
// expect: rank 0 on @host: cudaMemcpyAsync at @read reads bytes 0 to 15
// expect: the buffer: 16 bytes of rank 0's device memory, made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *mine = device_ints(4, rank), *buf, *open = NULL, host[4];
    cudaIpcMemHandle_t handle;
    MUST(cudaMalloc((void **)&buf, sizeof host)); // @malloc
    MUST(cudaMemcpy(buf, mine, sizeof host, cudaMemcpyDeviceToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaIpcGetMemHandle(&handle, buf));
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD); // from here on they run side by side
    if (rank == 1) {
        MUST(
            cudaIpcOpenMemHandle((void **)&open, handle, cudaIpcMemLazyEnablePeerAccess));
        // @write
        MUST(cudaMemcpyAsync(open, mine, sizeof host, cudaMemcpyDeviceToDevice, stream));
        MUST(cudaStreamSynchronize(stream));
    }
#ifdef FIXED
    MPI_Barrier(MPI_COMM_WORLD);
#endif
    if (rank == 0) {
        // @read
        MUST(cudaMemcpyAsync(host, buf, sizeof host, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
        EXPECT(host[3], 1);
#endif
    }
    if (open)
        MUST(cudaIpcCloseMemHandle(open));
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return 0;
}
