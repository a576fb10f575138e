// 24.5 One message to a node (build)
// make exercise N=24.5

/*
 * An all-to-all over `nnodes` nodes of `nlocal` GPUs. Rank node * nlocal + local has a
 * block of `count` floats for each rank, in rank order in sendbuf, and gets one from
 * each, in rank order in recvbuf. `stage` has as much room.
 *
 * A GPU should send only one message to each node. This one is number `local` in
 * `inside`, which has the GPUs of its node, and number `node` in `across`, which has
 * those with the same local number, one of each node. A send to itself is allowed. Don't
 * wait.
 */
#include "lesson.h"

void all_to_all(const float *sendbuf, float *stage, float *recvbuf, size_t count,
                int nlocal, int nnodes, ncclComm_t inside, ncclComm_t across,
                cudaStream_t stream) {
    // First in the node, then between the nodes.
}
