// Rank 1 deregisters its window, and rank 0 puts into it after a barrier. nccl.h of
// ncclPutSignal: "peerWin: memory window object registered by the target peer".
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclPutSignal writes into a window that the other rank
//     has deregistered
// expect: rank 0 on @host: ncclPutSignal at @put
// expect: rank 1 on @host: ncclCommWindowDeregister at @gone, before a barrier of all
//     ranks
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    ncclWindow_t window;
    int *buf = window_memory(BYTES, &window);
#ifndef FIXED
    if (rank == 1)
        MUST(ncclCommWindowDeregister(comm, window)); // @gone
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        // @put
        MUST(ncclPutSignal(buf, 4, ncclInt32, 1, window, 64, 0, 0, 0, comm, stream));
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};
    if (rank == 1)
        MUST(ncclWaitSignal(1, &one, comm, stream));
    MUST(cudaStreamSynchronize(stream));
#ifndef FIXED
    if (rank != 1)
#endif
        MUST(ncclCommWindowDeregister(comm, window));
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(ncclMemFree(buf));
    finish();
    return 0;
}
