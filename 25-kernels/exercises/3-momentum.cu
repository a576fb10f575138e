// 25.3 A step with momentum (build)
// make exercise N=25.3

/*
 * A step of training with momentum. `gradient` is this rank's; the step takes the mean of
 * all ranks:
 *
 *     velocity = momentum * velocity + mean
 *     weight   = weight - rate * velocity
 *
 * All three buffers have `count` floats in the GPU's memory. Call NCCL once, launch one
 * kernel, and don't wait on the host.
 */
#include "lesson.h"

__global__ void update(float *weight, float *velocity, const float *gradient,
                       size_t count, float rate, float momentum, float nranks) {
    // Your kernel.
}

extern "C" void train_step(float *weight, float *velocity, float *gradient, size_t count,
                           float rate, float momentum, int nranks, ncclComm_t comm,
                           cudaStream_t stream) {
    // Sum, then launch.
    CHECK_NCCL(ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, stream));
}
