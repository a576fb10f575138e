// 02.5 Sometimes the loss explodes (repair)
// make exercise N=02.5

/*
 * "We start the all-reduce of a layer's gradient as soon as it is ready. Since the last
 * release the loss explodes now and then. There is no error."
 *
 * ready[0], ready[1], … are the numbers of the layers in the order in which their
 * gradients became ready on this rank. All are ready when this function is called. All
 * layers have `count` elements. Repair it: afterwards grad[l] must be the sum of all
 * ranks, for each layer l.
 */
#include "lesson.h"

void reduce_layers(float **grad, const int *ready, int nlayers, size_t count,
                   ncclComm_t comm, cudaStream_t stream) {
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
}
