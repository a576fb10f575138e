// With blocking = 0 ncclCommFinalize only begins. "Users should guarantee that the state
// of the communicator becomes ncclSuccess before calling ncclCommDestroy" (NCCL's
// manual). On two H200 ncclCommDestroy returns ncclInvalidArgument, and the communicator
// stays.
//
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: ncclCommDestroy at @destroy returned
//     ncclInvalidArgument (4): ...not ready
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: 1 communicator (made at @init)
#include "../check.h"

static void ready(void) {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;)
        MUST(ncclCommGetAsyncError(comm, &state));
}

int main(void) {
    start_mpi();
    start_device();
    stream = new_stream();
    int *buf = device_ints(4, rank);
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclCommInitRankConfig(&comm, nranks, id, rank, &config); // @init
    ready();
    ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream);
    ready();
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    if (ncclCommFinalize(comm) != ncclInProgress)
        return 4;
#ifdef FIXED
    ready();
#endif
    ncclCommDestroy(comm); // @destroy
    MPI_Finalize();
    return 0;
}
