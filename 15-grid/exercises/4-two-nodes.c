// 15.4 An all-reduce over two nodes (build)
// make exercise N=15.4

/*
 * Sum `buf` over all GPUs of two nodes, in place. Between the nodes the links are slow,
 * so a GPU may send only its part of the buffer there.
 *
 * in_node has the `ngpus` GPUs of this node, and this one is number `gpu` there.
 * between has this GPU and the one with the same number in the other node. The buffer has
 * ngpus * count floats. Don't wait: the caller does.
 */
#include "lesson.h"

void all_reduce(float *buf, size_t count, int gpu, int ngpus, ncclComm_t in_node,
                ncclComm_t between, cudaStream_t stream) {
    // Your three calls.
}
