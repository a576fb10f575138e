// 09.1 Two streams, two waits (complete)
// make exercise N=09.1

/*
 * One step of a ring. The messages travel in the stream `lane`, and the addition works
 * in the stream `adding` (cuBLAS has been told so). Put in the events: the addition must
 * not start before the numbers have arrived, and what the caller queues in `lane` next
 * must not start before they have been added.
 *
 * The host should wait for nothing.
 */
#include "lesson.h"
#include <cublas_v2.h>

void ring_step(const float *sendbuf, float *recvbuf, const float *mine, size_t count,
               int next, int previous, ncclComm_t comm, cudaStream_t lane,
               cublasHandle_t blas, cudaStream_t adding, cudaEvent_t received,
               cudaEvent_t added) {
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(sendbuf, count, ncclFloat32, next, comm, lane));
    CHECK_NCCL(ncclRecv(recvbuf, count, ncclFloat32, previous, comm, lane));
    CHECK_NCCL(ncclGroupEnd());
    // Here?

    // recvbuf += mine, in the stream `adding`.
    const float one = 1;
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &one, mine, 1, recvbuf, 1));
    // And here?
}
