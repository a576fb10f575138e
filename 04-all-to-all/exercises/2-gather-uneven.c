// 04.2 A gather of uneven parts (build)
// make exercise N=04.2

/*
 * Gather: rank r has count[r] floats in `part`, and every rank knows all counts. Bring
 * them to rank `root`, into `all`, in the order of the ranks and without gaps. On the
 * other ranks `all` is NULL. Some counts may be 0.
 *
 * Use sends and receives of NCCL, on `stream`. Don't wait: the caller does.
 */
#include "lesson.h"

void gather(const float *part, float *all, const size_t *count, int root, int rank,
            int nranks, ncclComm_t comm, cudaStream_t stream) {
    // Yours: about ten lines.
}
