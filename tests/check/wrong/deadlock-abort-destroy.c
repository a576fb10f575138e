// One rank aborts the communicator, the others destroy it. "All active ranks are required
// to call this function in order to abort" (NCCL User Guide, ncclCommAbort): with 2.32.3
// the others hang, seen on two H100.
// rank: 0
// alone: hangs
// expect: NCCL CHECK: deadlock: one rank aborts a communicator that another destroys
// expect: rank 1 on @host: ncclCommAbort at @abort
// expect: rank ... on @host: ncclCommDestroy at @destroy
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    MUST(cudaStreamDestroy(stream));
#ifdef FIXED
    MUST(ncclCommAbort(comm));
#else
    if (rank == 1)
        MUST(ncclCommAbort(comm)); // @abort
    else
        MUST(ncclCommDestroy(comm)); // @destroy
#endif
    MPI_Finalize();
    return 0;
}
