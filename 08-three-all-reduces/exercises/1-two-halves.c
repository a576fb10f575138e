// 08.1 One sum in two halves (complete)
// make exercise N=08.1

/*
 * Give every rank the sum of all ranks' `sendbuf` in its `recvbuf`, in two halves:
 * a reduce-scatter, then an all-gather. Both buffers have `count` floats in the GPU's
 * memory. The number of ranks divides `count`.
 *
 * Do it without a third buffer. Don't wait: the caller does.
 */
#include "lesson.h"

void sum(const float *sendbuf, float *recvbuf, size_t count, int rank, int nranks,
         ncclComm_t comm, cudaStream_t stream) {
    // Your two calls.
}
