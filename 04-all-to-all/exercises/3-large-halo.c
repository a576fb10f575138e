// 04.3 It hangs when it grows (repair)
// make exercise N=04.3

/*
 * "Each rank of our ring exchanges its edges with both neighbours. The ranks have talked
 * to each other before. It passed all tests, with edges of 10 floats. Now the edges have
 * 10,000, and it hangs."
 *
 * Repair it. (The checks report it with 10 floats, too.)
 */
#include "lesson.h"

/* Sends `right` to the next rank and `left` to the previous one, and receives what these
 * send: into `from_left` what comes from the previous rank, and from the next one into
 * `from_right`. */
void exchange(const float *left, const float *right, float *from_left, float *from_right,
              size_t count, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
}
