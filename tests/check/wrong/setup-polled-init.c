// The communicator does not block, and the ranks ask again and again whether it is ready.
// It never is: one rank takes no part.
//
// rank: 0
// alone: hangs
// timeout: 1
// expect: NCCL CHECK: setup: ncclCommInitRank waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommGetAsyncError at @asks for
//     ncclCommInitRankConfig(rank 0 of @n ranks) at @init
// expect: rank @last on @host: is in MPI_Finalize at @finalize
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    int takes_part = rank < nranks - 1, n = nranks;
#ifdef FIXED
    n = nranks - 1;
#endif
    if (takes_part) {
        ncclResult_t state = ncclInProgress;
        ncclCommInitRankConfig(&comm, n, id, rank, &config); // @init
        while (state == ncclInProgress)
            MUST(ncclCommGetAsyncError(comm, &state)); // @asks
        ncclCommFinalize(comm);
        for (state = ncclInProgress; state == ncclInProgress;)
            MUST(ncclCommGetAsyncError(comm, &state));
        MUST(ncclCommDestroy(comm));
    }
    MPI_Finalize(); // @finalize
    return 0;
}
