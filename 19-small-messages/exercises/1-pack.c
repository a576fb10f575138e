// 19.1 Flags and norms (fast)
// make exercise N=19.1

/*
 * A training step sums `nvalues` small values over all ranks: norms, losses, flags. Each
 * has `count` floats; they follow one another in `values`, in the GPU's memory.
 *
 * Make it fast: at most a sixth of what it takes now. Don't wait: the caller does.
 */
#include "lesson.h"

void sum_values(float *values, size_t nvalues, size_t count, ncclComm_t comm,
                cudaStream_t stream) {
    for (size_t v = 0; v < nvalues; v++)
        CHECK_NCCL(ncclAllReduce(values + v * count, values + v * count, count,
                                 ncclFloat32, ncclSum, comm, stream));
}
