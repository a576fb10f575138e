// Rank 1 puts values into the window of rank 0, which waits for no signal. NCCL says
// nothing.
// rank: 0
// alone: exit code 0
// exit: 0
// warn: 0
// off: 0
// expect: NCCL CHECK: left behind: a communicator is destroyed, and a rank has never
//     waited for another one's signals
// expect: rank 1 on @host: signals to the communicator's rank 0: 2, the last at @signal
// expect: Hint: only after ncclWaitSignal
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    ncclWindow_t window;
    int *buf = window_memory(BYTES, &window);
    if (rank == 1) {
        MUST(ncclPutSignal(buf, 4, ncclInt32, 0, window, 64, 0, 0, 0, comm, stream));
        MUST(ncclSignal(0, 0, 0, 0, comm, stream)); // @signal
    }
#ifdef FIXED
    ncclWaitSignalDesc_t both = {.opCnt = 2, .peer = 1};
    if (rank == 0)
        MUST(ncclWaitSignal(1, &both, comm, stream));
#endif
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
