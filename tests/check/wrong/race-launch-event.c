// Another stream copies the sum as soon as it has been launched, which is before it is
// done. "CUDA event recorded at collective kernel launch completion" (nccl.h of NCCL
// 2.32, ncclCollConfig_t).
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: cudaStreamWaitEvent at @wait waits for launchCompletionEvent at @sum, and that
//     was before the operation
#include "../check.h"

int main(void) {
    start();
    cudaStream_t reader = new_stream();
    cudaEvent_t launched, done;
    int *pinned, *buf = device_ints(4, rank);
    MUST(cudaMallocHost((void **)&pinned, 4 * sizeof(int)));
    MUST(cudaEventCreateWithFlags(&launched, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.launchCompletionEvent = launched;
    // @sum
    MUST(ncclAllReduceConfig(buf, buf, 4, ncclInt32, ncclSum, comm, stream, &config));
    MUST(cudaEventRecord(done, stream));
#ifdef FIXED
    MUST(cudaStreamWaitEvent(reader, done, 0));
#else
    MUST(cudaStreamWaitEvent(reader, launched, 0)); // @wait
#endif
    MUST(cudaMemcpyAsync(pinned, buf, 4 * sizeof(int), cudaMemcpyDeviceToHost, reader));
    MUST(cudaStreamSynchronize(reader));
    EXPECT(pinned[3], sum_of_ranks());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaEventDestroy(launched));
    MUST(cudaEventDestroy(done));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(reader));
    finish();
    return 0;
}
