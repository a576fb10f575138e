// 24.4 Right, but three times as slow (repair)
// make exercise N=24.4

/*
 * An all-reduce in three steps was fast on the old cluster. On the new one its sums are
 * still right, but it takes three times as long, and most of the traffic that should stay
 * in a node goes over the network. There, mpirun is called with --map-by node.
 *
 * `inside` must have the ranks that share this rank's node, and `across` one rank of each
 * node. All nodes have the same number of ranks. Repair it for any way to start the job.
 */
#include "lesson.h"

void split(ncclComm_t all, int rank, int nranks, ncclComm_t *inside, ncclComm_t *across) {
    const int nlocal = nranks > 1 ? nranks / 2 : 1; // two nodes
    const int node = rank / nlocal, local = rank % nlocal;
    CHECK_NCCL(ncclCommSplit(all, node, local, inside, NULL));
    CHECK_NCCL(ncclCommSplit(all, local, node, across, NULL));
}
