// 05.2 Which chunk now? (complete)
// make exercise N=05.2

/*
 * All-gather by a ring: each rank sends only to the next one and receives only from the
 * previous one. At the beginning chunk `rank` of buf is filled, at the end all nranks
 * chunks are. Each has `count` floats. Complete it: which chunk goes out with a step, and
 * which one comes in?
 */
#include "lesson.h"

void ring_all_gather(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
                     cudaStream_t stream) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    for (int step = 0; step < nranks - 1; step++) {
        const int out = rank, in = previous; // so far the same in every step
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(
            ncclSend(buf + (size_t)out * count, count, ncclFloat32, next, comm, stream));
        CHECK_NCCL(ncclRecv(buf + (size_t)in * count, count, ncclFloat32, previous, comm,
                            stream));
        CHECK_NCCL(ncclGroupEnd());
    }
}
