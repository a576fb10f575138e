// A window is deregistered and registered again while the ranks put: each put goes into a
// window that is there, and a signal or a barrier comes before the next one is made.
#include "../check.h"

int main(void) {
    enum { ROUNDS = 4, BYTES = 4096 };
    start();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks, *buf;
    ncclWindow_t window, other;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = left};
    const int flags = NCCL_WIN_COLL_SYMMETRIC;
    MUST(ncclMemAlloc((void **)&buf, BYTES));
    MUST(cudaMemset(buf, 0, BYTES));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclCommWindowRegister(comm, buf, BYTES, &other, flags));
    for (int i = 0; i < ROUNDS; i++) {
        MUST(ncclCommWindowRegister(comm, buf, BYTES, &window, flags));
        MPI_Barrier(MPI_COMM_WORLD);
        MUST(ncclPutSignal(buf, 4, ncclInt32, right, window, 64, 0, 0, 0, comm, stream));
        MUST(ncclWaitSignal(1, &one, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(ncclCommWindowDeregister(comm, window));
        MPI_Barrier(MPI_COMM_WORLD);
        MUST(ncclPutSignal(buf, 4, ncclInt32, right, other, 64, 0, 0, 0, comm, stream));
        MUST(ncclWaitSignal(1, &one, comm, stream));
        MUST(cudaStreamSynchronize(stream));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(ncclCommWindowDeregister(comm, other));
    MUST(ncclMemFree(buf));
    finish();
    return 0;
}
