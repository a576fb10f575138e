// 12.3 Gather, compute, agree (build)
// make exercise N=12.3

/*
 * A model's weights are divided: each rank has `count` of them in `shard`. All shards, in
 * the order of the ranks, are the weights. Each rank has one sample, with as many numbers
 * as there are weights.
 *
 * A rank's result is the dot product of all weights and its own sample. Put the mean of
 * all ranks' results into *mean, on every rank. `whole` has room for all weights.
 * Everything is in the GPU's memory. Don't wait: the caller does.
 */
#include "lesson.h"

/* Queues the dot product of two vectors, and puts it into *result. */
void dot(const float *x, const float *y, size_t count, float *result,
         cudaStream_t stream);

void mean_result(const float *shard, size_t count, float *whole, const float *sample,
                 float *mean, ncclComm_t comm, cudaStream_t stream) {
    // Yours: about five lines.
}
