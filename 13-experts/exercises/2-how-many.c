// 13.2 How many will come? (complete)
// make exercise N=13.2

/*
 * This rank has leave[peer] tokens for each rank. Put into come[peer] how many come from
 * each. Both lists are in pinned memory of the host, and the caller reads come as soon as
 * this function returns. `there` and `here` have room for such a list in the GPU's
 * memory.
 */
#include "lesson.h"

void exchange_counts(const uint64_t *leave, uint64_t *come, uint64_t *there,
                     uint64_t *here, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const size_t bytes = (size_t)nranks * sizeof(uint64_t);
    CHECK_CUDA(cudaMemcpyAsync(there, leave, bytes, cudaMemcpyHostToDevice, stream));
    // Yours: from `there` to `here`, with NCCL.
    CHECK_CUDA(cudaMemcpyAsync(come, here, bytes, cudaMemcpyDeviceToHost, stream));
    // And here?
}
