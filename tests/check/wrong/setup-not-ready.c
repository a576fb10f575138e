// A communicator that does not block (blocking = 0) is used before it is ready. The real
// NCCL refuses the call: the collective never happens.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: setup: ncclAllReduce uses a communicator that is not ready
// expect: rank @any on @host: ncclAllReduce at @use
// expect: made by ncclCommInitRankConfig at @init, which does not wait for the others
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    stream = new_stream();
    int *buf = device_ints(4, rank), last = nranks - 1;
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == last) { // comes later than the others
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclCommInitRankConfig(&comm, nranks, id, rank, &config); // @init
#ifdef FIXED
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_INT, last, 0, MPI_COMM_WORLD);
    }
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
        MUST(ncclCommGetAsyncError(comm, &state));
    }
#endif
    ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream); // @use
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
        MUST(ncclCommGetAsyncError(comm, &state));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
