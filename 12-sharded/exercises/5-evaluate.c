// 12.5 A look at the model (repair)
// make exercise N=12.5

/*
 * "From time to time, rank 0 evaluates our model on a sample. Since the weights are
 * sharded, this hangs." Repair it. All ranks call this function, and the result of rank
 * 0 counts.
 *
 * Each rank has `count` of the weights in `shard`; `whole` has room for all of them, and
 * `sample` has as many numbers as there are weights.
 */
#include "lesson.h"

/* Queues the dot product of two vectors, and puts it into *result. */
void dot(const float *x, const float *y, size_t count, float *result,
         cudaStream_t stream);

void evaluate(const float *shard, size_t count, float *whole, const float *sample,
              float *result, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    if (rank == 0) {
        CHECK_NCCL(ncclAllGather(shard, whole, count, ncclFloat, comm, stream));
        dot(whole, sample, count * (size_t)nranks, result, stream);
    }
}
