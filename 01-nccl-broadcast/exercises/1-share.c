// 01.1 The missing broadcast (complete)
// make exercise N=01.1

/*
 * Rank `root` has `count` whole numbers in buf, in the memory of its GPU. Queue on
 * `stream` what brings them into buf on all other ranks, with one call of NCCL. Don't
 * wait for it: the caller does.
 */
#include "lesson.h"

void share(int *buf, size_t count, int root, ncclComm_t comm, cudaStream_t stream) {
    // Your call.
}
