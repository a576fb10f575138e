// The communicator does not block, and one rank leaves out its first collective: the
// others ask again and again whether it is done.
//
// rank: 1
// alone: hangs
// timeout: 1
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @sum, operation 1 on communicator
//     1; rank @last has not begun this operation
// expect: rank @last on @host: is in MPI_Finalize
#include "../check.h"

int main(void) {
    start_polled();
    int *buf = device_ints(4, 1), comes = 1;
#ifndef FIXED
    comes = rank != nranks - 1;
#endif
    if (comes) {
        ncclResult_t state = ncclInProgress;
        ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream); // @sum
        while (state == ncclInProgress)
            MUST(ncclCommGetAsyncError(comm, &state)); // @asks
        MUST(state);
        MUST(cudaStreamSynchronize(stream));
    }
    MUST(cudaFree(buf));
    finish_polled();
    return 0;
}
