// 01.6 Layer by layer (fast)
// make exercise N=01.6

/*
 * This function brings the weights of all layers from rank 0 to the others. Layer i has
 * the elements first[i] to first[i + 1] - 1 of `weights`, which is in the GPU's memory.
 *
 * Make it fast: it should take at most 1.2 times as long as one broadcast of as many
 * bytes. The weights must be there when it returns.
 */
#include "lesson.h"

void share_model(float *weights, const size_t *first, int nlayers, ncclComm_t comm,
                 cudaStream_t stream) {
    for (int i = 0; i < nlayers; i++) {
        float *layer = weights + first[i];
        const size_t count = first[i + 1] - first[i];
        CHECK_NCCL(ncclBroadcast(layer, layer, count, ncclFloat32, 0, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
}
