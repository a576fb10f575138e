// 11.5 Fill a bucket, send it (build)
// make exercise N=11.5

/*
 * The backward pass of a network, with buckets. Layer l has the elements first[l] to
 * first[l + 1] - 1 of `gradients`. compute_gradient(l) queues the computing of layer l's
 * gradients in the stream `computing`; call it for each layer, from the last
 * (nlayers - 1) to the first (0).
 *
 * All gradients must become the sum over all ranks, by all-reduces in the stream
 * `sending`. Collect layers in a bucket until it has at least `least` elements, then
 * send it with one all-reduce. The last bucket may have fewer. What the caller queues
 * in `computing` next must find the sums; the host waits for nothing.
 */
#include "lesson.h"

void compute_gradient(int layer);

void backward(float *gradients, const size_t *first, int nlayers, size_t least,
              ncclComm_t comm, cudaStream_t computing, cudaStream_t sending,
              cudaEvent_t ready, cudaEvent_t averaged) {
    for (int l = nlayers - 1; l >= 0; l--)
        compute_gradient(l);
}
