// 02.4 No gradient gets lost (repair)
// make exercise N=02.4

/*
 * Each rank has `count` gradients as bfloat16 on the host, 16 bits each. This function
 * adds them up over all ranks, as bfloat16, and returns the sums as floats. So 256 + 1
 * comes out as 256. Repair it: the sums must be right, 257 in this case.
 *
 * `gradients` and `sum` are in the host's memory. `scratch` has room for `count` floats
 * in the GPU's memory. Make one all-reduce.
 */
#include "lesson.h"

/* A bfloat16 is the upper half of a float. */
static float from_bfloat16(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void sum_gradients(const uint16_t *gradients, float *sum, float *scratch, size_t count,
                   ncclComm_t comm, cudaStream_t stream) {
    const size_t bytes = count * sizeof(uint16_t);
    uint16_t *halves = lesson_malloc(bytes);
    CHECK_CUDA(
        cudaMemcpyAsync(scratch, gradients, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch, scratch, count, ncclBfloat16, ncclSum, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(halves, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < count; i++)
        sum[i] = from_bfloat16(halves[i]);
    free(halves);
}
