// 21.3 Up and down a tree (build)
// make exercise N=21.3

/*
 * An all-reduce by a tree, from ncclSend and ncclRecv: the sums go up to rank 0, and the
 * total comes down again. It must work on any number of ranks, and no rank may need more
 * than about log2(nranks) steps up and as many down: not one after the other along all
 * ranks. `scratch` has room for `count` floats. Don't wait: the caller does.
 */
#include "lesson.h"

/* Queues buf[i] += other[i] on the stream; it is there. */
void add(float *buf, const float *other, size_t count, cudaStream_t stream);

void tree_sum(float *buf, float *scratch, size_t count, int rank, int nranks,
              ncclComm_t comm, cudaStream_t stream) {
    // Up, then down.
}
