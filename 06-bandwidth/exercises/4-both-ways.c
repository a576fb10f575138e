// 06.4 Both ways at once (fast)
// make exercise N=06.4

/*
 * Each rank swaps a large buffer with its partner. To avoid a deadlock, even ranks send
 * first and odd ones receive first. That is right, but slow. Make it faster: it should
 * take at most 0.7 times as long. Don't wait: the caller does.
 */
#include "lesson.h"

void swap(const float *mine, float *theirs, size_t count, int rank, int partner,
          ncclComm_t comm, cudaStream_t stream) {
    if (rank % 2 == 0) {
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    } else {
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    }
}
