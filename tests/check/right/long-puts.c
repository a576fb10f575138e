// Puts that are queued all at once, and take longer together than the checks wait where
// nothing moves.
// timeout: 0.6
#include "../check.h"

int main(void) {
    enum { PUTS = 80, BYTES = 1 << 24 };
    start();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = left};
    char *buf = window_memory(2 * BYTES, &window);
    for (int i = 0; i < PUTS; i++) {
        MUST(ncclPutSignal(buf, BYTES, ncclInt8, right, window, BYTES, 0, 0, 0, comm,
                           stream));
        MUST(ncclWaitSignal(1, &one, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
