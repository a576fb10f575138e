// Two buffers: while one is being summed, the other is being filled on another stream. An
// event for each direction keeps filling and summing of the same buffer apart.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t fill = new_stream();
    cudaEvent_t filled[2], summed[2];
    int *bufs[2];
    for (int i = 0; i < 2; i++) {
        MUST(cudaEventCreate(&filled[i]));
        MUST(cudaEventCreate(&summed[i]));
        MUST(cudaMalloc((void **)&bufs[i], 1000 * sizeof(int)));
    }
    for (int step = 0; step < 9; step++) {
        int i = step % 2;
        MUST(cudaStreamWaitEvent(fill, summed[i],
                                 0)); // nothing to wait for the first time
        MUST(cudaMemsetAsync(bufs[i], step % 4, 1000 * sizeof(int), fill));
        MUST(cudaEventRecord(filled[i], fill));
        MUST(cudaStreamWaitEvent(stream, filled[i], 0));
        MUST(ncclAllReduce(bufs[i], bufs[i], 1000, ncclInt32, ncclSum, comm, stream));
        MUST(cudaEventRecord(summed[i], stream));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(bufs[0], 1000, 0);                   // step 8
    EXPECT_INTS(bufs[1], 1000, nranks * 0x03030303); // step 7
    for (int i = 0; i < 2; i++) {
        MUST(cudaEventDestroy(filled[i]));
        MUST(cudaEventDestroy(summed[i]));
        MUST(cudaFree(bufs[i]));
    }
    MUST(cudaStreamDestroy(fill));
    finish();
    return 0;
}
