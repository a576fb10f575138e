// 12.2 The length of a gradient (complete)
// make exercise N=12.2

/*
 * To limit a gradient you need its length: the square root of the sum of all its squares.
 * But each rank has only its shard of the gradient, `count` numbers. Complete the
 * function: it returns the length of the whole gradient, on every rank. `squares` is one
 * float in the GPU's memory.
 */
#include "lesson.h"

#include <cublas_v2.h>
#include <math.h>

float gradient_length(const float *shard, int count, float *squares, cublasHandle_t blas,
                      ncclComm_t comm, cudaStream_t stream) {
    // The sum of this shard's squares.
    CHECK_CUBLAS(cublasSdot(blas, count, shard, 1, shard, 1, squares));
    // What is missing here?
    float sum;
    CHECK_CUDA(
        cudaMemcpyAsync(&sum, squares, sizeof sum, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return sqrtf(sum);
}
