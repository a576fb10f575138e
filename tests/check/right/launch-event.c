// A copy on another stream begins when the sum has been launched: it comes after what was
// queued before the sum, and both only read it. "CUDA event recorded at collective kernel
// launch completion" (nccl.h of NCCL 2.32, ncclCollConfig_t).
#include "../check.h"

int main(void) {
    start();
    cudaStream_t reader = new_stream();
    int *pinned, *buf = device_ints(8, 0), *sum = device_ints(4, 0);
    MUST(cudaMallocHost((void **)&pinned, 8 * sizeof(int)));
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    MUST(cudaEventCreateWithFlags(&config.launchCompletionEvent, cudaEventDisableTiming));
    for (int round = 0; round < 4; round++) {
        const int grouped = round % 2;
        MUST(cudaMemsetAsync(buf, round, 4 * sizeof(int), stream));
        if (grouped)
            MUST(ncclGroupStart());
        MUST(ncclAllReduceConfig(buf, sum, 4, ncclInt32, ncclMax, comm, stream, &config));
        // In a group, this comes before the sum, which is launched at its end.
        if (grouped)
            MUST(cudaMemsetAsync(buf + 4, round, 4 * sizeof(int), stream));
        if (grouped)
            MUST(ncclGroupEnd());
        MUST(cudaStreamWaitEvent(reader, config.launchCompletionEvent, 0));
        MUST(cudaMemcpyAsync(pinned, buf, (grouped ? 8 : 4) * sizeof(int),
                             cudaMemcpyDeviceToHost, reader));
        MUST(cudaStreamSynchronize(reader));
        EXPECT(pinned[grouped ? 7 : 3], round * 0x01010101);
        MUST(cudaStreamSynchronize(stream));
        EXPECT_INTS(sum, 4, round * 0x01010101);
    }
    MUST(cudaEventDestroy(config.launchCompletionEvent));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    MUST(cudaFree(sum));
    MUST(cudaStreamDestroy(reader));
    finish();
    return 0;
}
