// 18.1 The next batch, meanwhile (complete)
// make exercise N=18.1

/*
 * `nbatches` batches of `count` floats lie one after the other in host memory.
 * Copy each into one of two device buffers, in turn, and sum it over all ranks there, in
 * place. Then call use(i, buffer, stream) for batch i; it queues its work on `summing`. A
 * copy should run while the other buffer is summed: use both streams. When the function
 * returns, all work is queued.
 */
#include "lesson.h"

void use(int batch, const float *buffer, cudaStream_t stream);

void sum_batches(const float *batches, int nbatches, size_t count,
                 float *const buffers[2], cudaStream_t copying, cudaStream_t summing,
                 ncclComm_t comm) {
    cudaEvent_t copied, summed[2];
    CHECK_CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaEventCreateWithFlags(&summed[b], cudaEventDisableTiming));
    for (int i = 0; i < nbatches; i++) {
        float *buffer = buffers[i % 2];
        const float *batch = batches + (size_t)i * count;
        const size_t bytes = count * sizeof(float);
        // Your calls.
        (void)batch, (void)bytes, (void)copying, (void)comm, (void)copied;
        use(i, buffer, summing);
    }
    CHECK_CUDA(cudaEventDestroy(copied));
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaEventDestroy(summed[b]));
}
