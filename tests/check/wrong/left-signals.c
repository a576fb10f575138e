// Rank 0 signals three times, and rank 1 waits for one of them: the others would count
// for whatever it waits for next.
// exit: 0
// warn: 0
// off: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: 2 signals from rank 0 that rank 1 never waited for
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    int *buf;
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};
#ifdef FIXED
    one.opCnt = 3;
#endif
    MUST(ncclMemAlloc((void **)&buf, BYTES));
    MUST(cudaMemset(buf, 0, BYTES));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclCommWindowRegister(comm, buf, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    if (rank == 0) {
        MUST(ncclPutSignal(buf, 4, ncclInt32, 1, window, 64, 0, 0, 0, comm, stream));
        MUST(ncclSignal(1, 0, 0, 0, comm, stream));
        MUST(ncclSignal(1, 0, 0, 0, comm, stream));
    } else if (rank == 1) {
        MUST(ncclWaitSignal(1, &one, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclMemFree(buf));
    finish();
    return 0;
}
