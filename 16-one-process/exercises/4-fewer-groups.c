// 16.4 A group for everything (fast)
// make exercise N=16.4

/*
 * One process has `ngpus` GPUs, and `ntensors` small tensors on each: tensor t of GPU d
 * is bufs[d][t], with `count` floats. Each tensor is summed over the GPUs, in place.
 *
 * Make it fast: at most 0.4 times as long as this takes now. Don't wait: the caller does.
 */
#include "lesson.h"

void sum_tensors(int ngpus, int ntensors, float *const *const *bufs, size_t count,
                 const ncclComm_t *comms, const cudaStream_t *streams) {
    for (int t = 0; t < ntensors; t++) {
        CHECK_NCCL(ncclGroupStart());
        for (int d = 0; d < ngpus; d++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], count, ncclFloat32, ncclSum,
                                     comms[d], streams[d]));
        CHECK_NCCL(ncclGroupEnd());
    }
}
