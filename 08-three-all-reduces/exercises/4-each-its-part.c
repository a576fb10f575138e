// 08.4 Everybody does the same work (fast)
// make exercise N=08.4

/*
 * `gradient` has `rows` rows of WIDTH floats. This function adds up the gradients of all
 * ranks and multiplies every row of the sum by a matrix (Shampoo and K-FAC are optimizers
 * that do so). Every rank does all of the multiplying.
 *
 * Make it faster: on a modelled machine with slow arithmetic, N ranks should take at most
 * 0.4 + 1/N times as long, so 4 ranks at most 0.65 times. `sum` and `result` have `rows`
 * rows, too, and what you leave in `sum` does not matter. The number of ranks divides
 * `rows`. When the function returns, work may still be queued on `stream`.
 */
#include "lesson.h"

enum { WIDTH = 256 };

/* Queues out = in x matrix on `stream`, for this many rows. */
void multiply(const float *in, size_t rows, float *out);

void precondition(const float *gradient, float *sum, float *result, size_t rows, int rank,
                  int nranks, ncclComm_t comm, cudaStream_t stream) {
    CHECK_NCCL(
        ncclAllReduce(gradient, sum, rows * WIDTH, ncclFloat32, ncclSum, comm, stream));
    multiply(sum, rows, result);
}
