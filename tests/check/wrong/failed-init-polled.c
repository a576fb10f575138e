// cudaSetDevice is forgotten, so all ranks are on device 0, and the communicator does not
// block. ncclCommGetAsyncError gives ncclInvalidUsage: the note has the reason.
//
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: ncclCommInitRankConfig at @init returned
//     ncclInvalidUsage (5): Duplicate GPU detected: rank 0 and rank 1 both on GPU
#include "../check.h"

int main(void) {
    start_mpi();
#ifdef FIXED
    start_device();
#endif
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    may_come_later(ncclCommInitRankConfig(&comm, nranks, id, rank, &config)); // @init
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
        MUST(ncclCommGetAsyncError(comm, &state));
    MUST(ncclCommAbort(comm));
    MPI_Finalize();
    return 0;
}
