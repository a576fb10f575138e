// Rank 0 puts four ints into the window of rank 1, and counts the offset in elements that
// are larger: they do not fit after it.
// rank: 0
// alone: a call returns 4
// expect: NCCL CHECK: memory: ncclPutSignal writes past the end of a window
// expect: rank 0 on @host: ncclPutSignal at @put, 16 bytes from byte 4096 of a window of
//     4096 bytes
// expect: registered by ncclCommWindowRegister at @register
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    int *buf;
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};
    size_t offset = BYTES - 16;
#ifndef FIXED
    offset = BYTES;
#endif
    MUST(ncclMemAlloc((void **)&buf, BYTES));
    MUST(cudaMemset(buf, 0, BYTES));
    MUST(cudaStreamSynchronize(0));
    // @register
    MUST(ncclCommWindowRegister(comm, buf, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    if (rank == 0)
        // @put
        MUST(ncclPutSignal(buf, 4, ncclInt32, 1, window, offset, 0, 0, 0, comm, stream));
    else if (rank == 1)
        MUST(ncclWaitSignal(1, &one, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
