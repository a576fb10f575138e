// Rank 1 waits for two signals of rank 0, which puts once.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: every rank waits, and nothing has moved for 1 seconds
// expect: rank 1 on @host: waits in cudaStreamSynchronize at @sync for the signals of
//     ncclWaitSignal at @wait
// expect: rank 0 on @host: waits in MPI_Barrier at @barrier
// expect: Hint: each signal that ncclWaitSignal waits for is one ncclPutSignal
// timeout: 1
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 2, .peer = 0};
#ifdef FIXED
    one.opCnt = 1;
#endif
    int *buf = window_memory(BYTES, &window);
    if (rank == 0)
        MUST(ncclPutSignal(buf, 4, ncclInt32, 1, window, 64, 0, 0, 0, comm, stream));
    else if (rank == 1)
        MUST(ncclWaitSignal(1, &one, comm, stream)); // @wait
    MUST(cudaStreamSynchronize(stream));             // @sync
    MPI_Barrier(MPI_COMM_WORLD);                     // @barrier
    end_window(buf, window);
    finish();
    return 0;
}
