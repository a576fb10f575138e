// Three non-blocking streams in a row: copy in, sum, copy out. Events order them, and the
// host waits only for the last.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t in = new_stream(), out = new_stream();
    cudaEvent_t copied, summed;
    MUST(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming));
    int *pinned, *buf;
    MUST(cudaMallocHost((void **)&pinned, 4 * sizeof(int)));
    MUST(cudaMalloc((void **)&buf, 4 * sizeof(int)));
    for (int i = 0; i < 4; i++) {
        pinned[i] = rank;
    }
    for (int round = 0; round < 3; round++) {
        MUST(cudaMemcpyAsync(buf, pinned, 4 * sizeof(int), cudaMemcpyHostToDevice, in));
        MUST(cudaEventRecord(copied, in));
        MUST(cudaStreamWaitEvent(stream, copied, 0));
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        MUST(cudaEventRecord(summed, stream));
        MUST(cudaStreamWaitEvent(out, summed, 0));
        MUST(cudaMemcpyAsync(pinned, buf, 4 * sizeof(int), cudaMemcpyDeviceToHost, out));
        MUST(cudaStreamSynchronize(out));
        EXPECT(pinned[3], nranks - 1);
    }
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    MUST(cudaEventDestroy(copied));
    MUST(cudaEventDestroy(summed));
    MUST(cudaStreamDestroy(in));
    MUST(cudaStreamDestroy(out));
    finish();
    return 0;
}
