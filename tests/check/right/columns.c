// A halo: the first and the last column of each rank's block of a matrix go to its
// neighbours, by cudaMemcpy2DAsync into buffers of their own, which lie side by side in
// pinned and in device memory. Two streams copy two columns of the same rows at the same
// time.
#include "../check.h"

enum { ROWS = 20, COLUMNS = 8 };

int main(void) {
    start();
    int *block, *sent, *come, *host;
    size_t pitch, line = sizeof(int);
    cudaStream_t right = new_stream();
    cudaEvent_t copied;
    MUST(cudaMallocPitch((void **)&block, &pitch, COLUMNS * line, ROWS));
    MUST(cudaMalloc((void **)&sent, 2 * ROWS * line));
    MUST(cudaMalloc((void **)&come, 2 * ROWS * line));
    MUST(cudaMallocHost((void **)&host, 2 * ROWS * line));
    MUST(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    int rows[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        rows[i] = rank * 1000 + i;
    MUST(cudaMemcpy2D(block, pitch, rows, COLUMNS * line, COLUMNS * line, ROWS,
                      cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy2DAsync(sent, line, block, pitch, line, ROWS, cudaMemcpyDeviceToDevice,
                           stream));
    MUST(cudaMemcpy2DAsync(sent + ROWS, line, block + COLUMNS - 1, pitch, line, ROWS,
                           cudaMemcpyDeviceToDevice, right));
    MUST(cudaEventRecord(copied, right));
    MUST(cudaStreamWaitEvent(stream, copied, 0));
    const int before = (rank + nranks - 1) % nranks, behind = (rank + 1) % nranks;
    MUST(ncclGroupStart());
    MUST(ncclSend(sent, ROWS, ncclInt32, before, comm, stream));
    MUST(ncclSend(sent + ROWS, ROWS, ncclInt32, behind, comm, stream));
    MUST(ncclRecv(come + ROWS, ROWS, ncclInt32, behind, comm, stream));
    MUST(ncclRecv(come, ROWS, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
    // Into the columns of the other stream's business, and out again.
    MUST(cudaMemcpy2DAsync(block, pitch, come, line, line, ROWS, cudaMemcpyDeviceToDevice,
                           stream));
    MUST(cudaMemset2DAsync(block + 1, pitch, 0, line, ROWS, right));
    MUST(cudaMemcpy2DAsync(host, 2 * line, block, pitch, line, ROWS,
                           cudaMemcpyDeviceToHost, stream));
    MUST(cudaMemcpy2DAsync(host + 1, 2 * line, come + ROWS, line, line, ROWS,
                           cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(right));
    for (int i = 0; i < ROWS; i++) {
        EXPECT(host[2 * i], before * 1000 + i * COLUMNS + COLUMNS - 1);
        EXPECT(host[2 * i + 1], behind * 1000 + i * COLUMNS);
    }
    MUST(cudaEventDestroy(copied));
    MUST(cudaStreamDestroy(right));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(come));
    MUST(cudaFree(sent));
    MUST(cudaFree(block));
    finish();
    return 0;
}
