// In a loop each rank puts into the next one and signals back to the one before. In the
// fourth step rank 1 reads what rank 0 puts before it waits for the signal.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: race: ncclPutSignal writes what another rank reads, and neither
//     waits for the other
// expect: rank 0 on @host: ncclPutSignal at @put writes what
// expect: rank 1 on @host: cudaMemcpyAsync at @read reads
// expect: the bytes: 64 to 79 of rank 1's part of the window
#include "../check.h"

int main(void) {
    enum { BYTES = 4096, STEPS = 10 };
    start();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks, got[4];
    ncclWindow_t window;
    ncclWaitSignalDesc_t both[] = {{.opCnt = 1, .peer = left},
                                   {.opCnt = 1, .peer = right}};
    int *buf = window_memory(BYTES, &window);
    for (int i = 0; i < STEPS; i++) {
        int early = 0;
#ifndef FIXED
        early = rank == 1 && i == 3;
#endif
        // @put
        MUST(ncclPutSignal(buf, 4, ncclInt32, right, window, 64, 0, 0, 0, comm, stream));
        if (!early)
            MUST(ncclWaitSignal(1, both, comm, stream));
        // @read
        MUST(cudaMemcpyAsync(got, buf + 16, 16, cudaMemcpyDeviceToHost, stream));
        if (early)
            MUST(ncclWaitSignal(1, both, comm, stream));
        MUST(ncclSignal(left, 0, 0, 0, comm, stream));
        MUST(ncclWaitSignal(1, both + 1, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    end_window(buf, window);
    finish();
    return 0;
}
