// 19.4 Values that lie apart (build)
// make exercise N=19.4

/*
 * `nvalues` small values of `count` floats each lie somewhere in the GPU's memory:
 * values[0], values[1], … Sum each of them over all ranks, in place, with a single call
 * of NCCL. `packed` has room for all of them, one after the other. Don't wait on the
 * host.
 */
#include "lesson.h"

void sum_values(float *const *values, size_t nvalues, size_t count, float *packed,
                ncclComm_t comm, cudaStream_t stream) {
    // Together, sum, back.
}
