// 14.4 Twice round the ring (build)
// make exercise N=14.4

/*
 * An interleaved pipeline, forward. A rank has two chunks of layers: chunk 0 is stage
 * `rank` of the model, and chunk 1 is stage `n + rank`, where n is the number of ranks.
 * So a micro-batch passes all ranks in turn, and then all of them once more. What the
 * last rank makes with its chunk 0 goes to rank 0, for its chunk 1.
 *
 * There are n micro-batches of `count` floats. Each rank computes all of them with chunk
 * 0, in their order, and then all with chunk 1. x[m] is where compute() works on
 * micro-batch m. On rank 0 all of them are there at first; on the last rank they should
 * be there in the end, after all stages. Write the pass. `previous` and `next` are the
 * neighbours in the ring.
 */
#include "lesson.h"

/* Queues one chunk's work on x[m], in its place. */
void compute(int chunk, float *x, cudaStream_t stream);

void forward(float *const *x, size_t count, int rank, int n, int previous, int next,
             ncclComm_t comm, cudaStream_t stream) {
    // Yours: about ten lines.
}
