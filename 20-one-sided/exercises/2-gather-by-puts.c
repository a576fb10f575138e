// 20.2 Gather without receives (build)
// make exercise N=20.2

/*
 * An all-gather with puts. `parts` is a window that all ranks have registered: nranks
 * parts of `count` floats. Each rank has its own part at parts + rank * count. Bring it
 * to the same place on all other ranks, with ncclPutSignal; what comes next on `stream`
 * must find all parts there. Don't wait on the host.
 */
#include "lesson.h"

void gather(float *parts, size_t count, ncclWindow_t window, int rank, int nranks,
            ncclComm_t comm, cudaStream_t stream) {
    // Your calls.
}
