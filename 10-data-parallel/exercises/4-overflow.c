// 10.4 One rank skips the step (repair)
// make exercise N=10.4

/*
 * In training with 16-bit floats a gradient can overflow. Then the step is to be skipped:
 * on all ranks, even if only one of them has an overflow. Return true if the step was
 * made: `gradient` is then the sum over all ranks. Return false on all ranks, and leave
 * the gradient as it is, if it is skipped.
 *
 * "Ran for hours, then stood still." Repair it. `overflow` is 1 or 0; `flag` is an int
 * in the GPU's memory that you may use. Return when the work on `stream` is done, or
 * leave it queued there, as you like.
 */
#include "lesson.h"

bool step(float *gradient, size_t count, int overflow, int *flag, ncclComm_t comm,
          cudaStream_t stream) {
    if (overflow)
        return false;
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, stream));
    return true;
}
