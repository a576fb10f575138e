// A queue with two slots: rank 0 puts items, rank 1 takes them. Nothing tells rank 0 that
// a slot is free again, and it puts the third item over the first.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: ncclPutSignal writes what another rank reads, and neither
//     waits for the other
// expect: rank 0 on @host: ncclPutSignal at @put writes what
// expect: rank 1 on @host: cudaMemcpyAsync at @read reads
// expect: Then signal back after the read, and wait for that before the put.
#include "../check.h"

int main(void) {
    enum { SLOTS = 2, ITEMS = 8, BYTES = 4096 };
    start();
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 1 - rank};
    int got[4], *buf = window_memory(BYTES, &window);
    for (int i = 0; i < ITEMS && rank < 2; i++) {
        size_t slot = 64 + (size_t)(i % SLOTS) * sizeof got;
        if (rank == 0) {
#ifdef FIXED
            if (i >= SLOTS)
                MUST(ncclWaitSignal(1, &one, comm, stream));
#endif
            // @put
            MUST(
                ncclPutSignal(buf, 4, ncclInt32, 1, window, slot, 0, 0, 0, comm, stream));
        } else {
            MUST(ncclWaitSignal(1, &one, comm, stream));
            // @read
            MUST(cudaMemcpyAsync(got, (char *)buf + slot, 16, cudaMemcpyDeviceToHost,
                                 stream));
#ifdef FIXED
            MUST(ncclSignal(0, 0, 0, 0, comm, stream));
#endif
        }
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
