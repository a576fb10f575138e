// A value goes round in pinned memory: to the device, to the next rank, back to the host,
// where it grows by one. The host waits each time before it touches the memory.
#include "../check.h"

int main(void) {
    start();
    int *pinned, *buf;
    MUST(cudaHostAlloc((void **)&pinned, 8 * sizeof(int), cudaHostAllocDefault));
    MUST(cudaMalloc((void **)&buf, sizeof(int)));
    for (int i = 0; i < 8; i++) {
        pinned[i] = 0;
    }
    for (int round = 0; round < 2; round++) {
        if (rank > 0) {
            MUST(ncclRecv(buf, 1, ncclInt32, rank - 1, comm, stream));
            MUST(cudaMemcpyAsync(pinned, buf, sizeof(int), cudaMemcpyDeviceToHost,
                                 stream));
            pinned[4]++; // another part of the same allocation is nobody's business
            MUST(cudaStreamSynchronize(stream));
        }
        pinned[0]++;
        MUST(cudaMemcpyAsync(buf, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
        int seen = pinned[0]; // both sides only read: no conflict
        EXPECT(seen > rank, 1);
        if (rank < nranks - 1) {
            MUST(ncclSend(buf, 1, ncclInt32, rank + 1, comm, stream));
        }
        MUST(cudaStreamSynchronize(stream));
    }
    EXPECT(pinned[0], 2 + rank);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
