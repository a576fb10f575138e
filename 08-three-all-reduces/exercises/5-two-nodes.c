// 08.5 Two nodes and a slow network (build)
// make exercise N=08.5

/*
 * Two nodes have the same number of GPUs each. Give every rank the sum of the `buf`s
 * of all ranks of both nodes, in place, with little traffic between the nodes: of each
 * rank's buffer, only one part of `count` / (ranks of the node) elements should go there.
 *
 * `node` is the communicator of this rank's node, which has `local_n` ranks; this rank
 * has the number `local_rank` there. `across` has two ranks: this one, and the one with
 * the same number on the other node. `local_n` divides `count`. Don't wait.
 */
#include "lesson.h"

void sum_of_both(float *buf, size_t count, ncclComm_t node, int local_rank, int local_n,
                 ncclComm_t across, cudaStream_t stream) {
    // Your three calls.
}
