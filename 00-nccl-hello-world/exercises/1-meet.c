// 00.1 One communicator for all (complete)
// make exercise N=00.1

/*
 * Make one communicator of all ranks. Each rank keeps its number: rank 2 of MPI is rank 2
 * of the communicator. MPI has been started, and the GPU has been chosen.
 */
#include "lesson.h"

ncclComm_t join(int rank, int nranks) {
    ncclComm_t comm = NULL;
    // Make a unique id, bring it to all ranks, and join with it.
    return comm;
}
