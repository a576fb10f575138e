// Rank 0 puts into rank 1's part of the window, and rank 1 reads it before it waits for
// the signal: the old values, or half of the new.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: race: ncclPutSignal writes what another rank reads, and neither
//     waits for the other
// expect: rank 0 on @host: ncclPutSignal at @put writes what
// expect: rank 1 on @host: cudaMemcpyAsync at @read reads
// expect: the bytes: 64 to 79 of rank 1's part of the window
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    ncclWindow_t window;
    int got[8], *buf = window_memory(BYTES, &window);
    if (rank == 0)
        // @put
        MUST(ncclPutSignal(buf, 4, ncclInt32, 1, window, 64, 0, 0, 0, comm, stream));
    if (rank == 1) {
        ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};
#ifdef FIXED
        MUST(ncclWaitSignal(1, &one, comm, stream));
#endif
        // @read
        MUST(cudaMemcpyAsync(got, buf + 12, 32, cudaMemcpyDeviceToHost, stream));
#ifndef FIXED
        MUST(ncclWaitSignal(1, &one, comm, stream));
#endif
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
