//: kind repair
//: title No gradient gets lost
//: trains adding up bfloat16 in float
//: ranks 3 4 | 1 2 7 8
//: calls ncclAllReduce=1
//: starter of the sum is
//: wrong half-float s/ncclFloat32/ncclFloat16/: of the sum is
//: wrong bfloat s/ncclFloat32/ncclBfloat16/: of the sum is
//: wrong as-integers s/sum\[i\] = from_bfloat16.*?;(.*)cudaStreamSynchronize/sum[i] = gradients[i];$1cudaStreamSynchronize/s: of the sum is
//: wrong not-back s/CHECK_CUDA\(\s*cudaMemcpyAsync\(sum, scratch[^;]*;//: element 0 of the sum is
//: learned Keep gradients in bfloat16 if you must, but add them up in float.
//: why A float keeps 24 binary digits, so the sum of the ranks is exact; nothing is rounded to bfloat16 after it.
//: hint Where is the 1 of 256 + 1 lost: when it is stored as a bfloat16, or when it is added?
//: hint Turn the gradients into floats on the host, before the all-reduce, instead of after it.
//: hint sum[i] = from_bfloat16(gradients[i]), copy sum to `scratch`, ncclAllReduce with ncclFloat32 in place, copy
//:   it back, wait.
//: file

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
    //: starter
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
    //: solution
    const size_t bytes = count * sizeof(float);
    for (size_t i = 0; i < count; i++)
        sum[i] = from_bfloat16(gradients[i]);
    CHECK_CUDA(cudaMemcpyAsync(scratch, sum, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch, scratch, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(sum, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong type-only: read as numbers of the wrong type
    const size_t bytes = count * sizeof(uint16_t);
    uint16_t *halves = lesson_malloc(bytes);
    CHECK_CUDA(
        cudaMemcpyAsync(scratch, gradients, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch, scratch, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(halves, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < count; i++)
        sum[i] = from_bfloat16(halves[i]);
    free(halves);
    //: end
}
//: check
void sum_gradients(const uint16_t *gradients, float *sum, float *scratch, size_t count,
                   ncclComm_t comm, cudaStream_t stream);

/* Large on rank 0 and small on the others: a bfloat16 without being rounded. */
static float gradient(int rank, size_t i) {
    return rank == 0 ? 256.0f * (float)(i % 3 + 1) : (float)(check_data(rank, i) | 1);
}

void check(void) {
    const size_t counts[] = {7, 1, 501};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c];
        check_case("%zu gradients", count);
        float *scratch = check_device(count * sizeof *scratch);
        uint16_t *mine = check_host(count * sizeof *mine);
        float *sum = check_host(count * sizeof *sum);
        float *expected = check_host(count * sizeof *expected);
        for (size_t i = 0; i < count; i++) {
            const float value = gradient(check_rank, i);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            mine[i] = (uint16_t)(bits >> 16);
            expected[i] = sum[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += gradient(r, i);
        }
        sum_gradients(mine, sum, scratch, count, check_comm, check_stream);
        bool far = false;
        for (size_t i = 0; i < count; i++)
            far = far || !(sum[i] >= 0 && sum[i] <= 2 * expected[i]);
        if (far)
            check_mistake(
                "This is far off: somewhere bytes are read as numbers of the wrong type.",
                sum);
        check_elements("the sum", sum, expected, count, ncclFloat32);
    }
}
