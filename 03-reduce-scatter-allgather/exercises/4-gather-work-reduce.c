// 03.4 Gather, work, reduce (build)
// make exercise N=03.4

/*
 * The weights are divided: each rank has `count` of them in `part`, and rank r's are the
 * r-th part of all. local_loss() needs all of them, and says how good they are for this
 * rank's data. Write a step: bring all weights into `weights` on every rank, queue
 * local_loss(), and leave in `loss`, on every rank, the mean of all ranks' losses.
 *
 * All pointers are to the GPU's memory. All work is queued on `stream`; don't wait.
 */
#include "lesson.h"

/* Queues on `stream`: *loss = the loss of `total` weights for this rank's data. */
void local_loss(const float *weights, size_t total, float *loss, cudaStream_t stream);

void step(const float *part, size_t count, float *weights, float *loss, int nranks,
          ncclComm_t comm, cudaStream_t stream) {
    // Yours: three calls.
}
