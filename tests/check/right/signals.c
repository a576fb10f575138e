// A ring of puts and signals, many times, with waits that are queued long before.
#include "../check.h"

int main(void) {
    enum { ROUNDS = 20, BYTES = 4096 };
    start();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = left};
    int *buf = window_memory(BYTES, &window);
    for (int i = 0; i < ROUNDS; i++) {
        if (rank > 0)
            MUST(ncclWaitSignal(1, &one, comm, stream));
        if (rank == 0 && i % 5 == 0)
            usleep(200000);
        MUST(ncclPutSignal(buf, 4, ncclInt32, right, window, 64, 0, 0, 0, comm, stream));
        if (rank == 0)
            MUST(ncclWaitSignal(1, &one, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
