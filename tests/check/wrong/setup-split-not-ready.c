// A communicator is split off one that does not block, and is used without asking whether
// it is ready. Here it is by the time. In the real NCCL its handle is NULL until then.
//
// alone: exit code 0
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator that is not ready
// expect: rank @any on @host: ncclAllReduce at @use
// expect: made by ncclCommSplit at @split, which does not wait for the others
#include "../check.h"

static void await(ncclComm_t made) {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;)
        MUST(ncclCommGetAsyncError(made, &state));
}

int main(void) {
    start_mpi();
    start_device();
    stream = new_stream();
    ncclUniqueId id;
    ncclComm_t part = NULL;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclCommInitRankConfig(&comm, nranks, id, rank, &config);
    await(comm);
    int *buf = device_ints(4, rank);
    ncclCommSplit(comm, 0, rank, &part, NULL); // @split
#ifdef FIXED
    await(comm); // part is there when this one is ready again
#else
    sleep(1);
#endif
    ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, part, stream); // @use
    await(part);
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    ncclCommFinalize(part);
    await(part);
    MUST(ncclCommDestroy(part));
    ncclCommFinalize(comm);
    await(comm);
    MUST(ncclCommDestroy(comm));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
