// Copies between host and device are timed, by events and by MPI. Nobody needs the bytes,
// so nothing has filled the buffers.
#include "../check.h"

enum { BYTES = 1 << 20 };

int main(void) {
    start();
    void *device, *pinned;
    cudaEvent_t begun, ended;
    float ms;
    MUST(cudaMalloc(&device, BYTES));
    MUST(cudaMallocHost(&pinned, BYTES));
    MUST(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, stream));
    if (rank % 2 == 0) {
        MUST(cudaEventCreate(&begun));
        MUST(cudaEventCreate(&ended));
        MUST(cudaEventRecord(begun, stream));
        for (int i = 0; i < 5; i++)
            MUST(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, stream));
        MUST(cudaEventRecord(ended, stream));
        MUST(cudaEventSynchronize(ended));
        MUST(cudaEventElapsedTime(&ms, begun, ended));
        EXPECT(ms > 0, 1);
        MUST(cudaEventDestroy(begun));
        MUST(cudaEventDestroy(ended));
    } else {
        double seconds = -MPI_Wtime();
        for (int i = 0; i < 5; i++)
            MUST(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT(seconds + MPI_Wtime() > 0, 1);
    }
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(device));
    finish();
    return 0;
}
