// 02.6 Forty small gradients (fast)
// make exercise N=02.6

/*
 * Forty gradients, each in a buffer of its own: each must become the sum of all ranks.
 * This function makes forty all-reduces, one after another. Make it faster: it should
 * take at most 0.9 times as long. When it returns, all work may still be queued on
 * `stream`.
 *
 * Gradient g has count[g] elements. `bucket` has room for all of them together. All are
 * in the GPU's memory.
 */
#include "lesson.h"

void reduce_all(float **gradient, const size_t *count, int ngradients, float *bucket,
                ncclComm_t comm, cudaStream_t stream) {
    for (int g = 0; g < ngradients; g++)
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclSum,
                                 comm, stream));
}
