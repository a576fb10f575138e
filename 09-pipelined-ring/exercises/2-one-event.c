// 09.2 Two lanes and one event (repair)
// make exercise N=09.2

/*
 * Each rank sends `count` floats to the next rank and receives as many from the
 * previous one, in two halves, each in a lane (a stream with its own communicator). To
 * the caller it should look like one operation of `stream`: what the caller queues there
 * next must find all the numbers. "It does on my machine. On the cluster the first half
 * is sometimes old."
 *
 * Repair it, without waiting on the host.
 */
#include "lesson.h"

enum { LANES = 2 };

void shift(const float *sendbuf, float *recvbuf, size_t count, int next, int previous,
           const ncclComm_t *comm, const cudaStream_t *lane, cudaStream_t stream,
           cudaEvent_t begin, cudaEvent_t done) {
    CHECK_CUDA(cudaEventRecord(begin, stream));
    for (int l = 0; l < LANES; l++) {
        const size_t first = count * (size_t)l / LANES;
        const size_t part = count * (size_t)(l + 1) / LANES - first;
        CHECK_CUDA(cudaStreamWaitEvent(lane[l], begin, 0));
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclSend(sendbuf + first, part, ncclFloat32, next, comm[l], lane[l]));
        CHECK_NCCL(
            ncclRecv(recvbuf + first, part, ncclFloat32, previous, comm[l], lane[l]));
        CHECK_NCCL(ncclGroupEnd());
        CHECK_CUDA(cudaEventRecord(done, lane[l]));
    }
    CHECK_CUDA(cudaStreamWaitEvent(stream, done, 0));
}
