// A communicator that does not block (blocking = 0) returns ncclInProgress for a group,
// and the device is waited for before the program has asked whether the work is there.
// alone: wrong data
// expect: NCCL CHECK: setup: cudaDeviceSynchronize waits for a device that NCCL's work
//     may not be on yet
// expect: rank @any on @host: cudaDeviceSynchronize at @wait
// expect: ncclSend at @send has returned ncclInProgress: communicator 1 does not block
#include "../check.h"

static void ask(void) {
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress;)
        MUST(ncclCommGetAsyncError(comm, &state));
}

static void may_come_later(ncclResult_t result) {
    if (result != ncclInProgress)
        MUST(result);
}

int main(void) {
    start_mpi();
    start_device();
    stream = new_stream();
    int *buf = device_ints(4, rank), *into = device_ints(4, -1);
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    may_come_later(ncclCommInitRankConfig(&comm, nranks, id, rank, &config));
    ask();
    may_come_later(ncclGroupStart());
    may_come_later(ncclRecv(into, 4, ncclInt32, from, comm, stream));
    may_come_later(ncclSend(buf, 4, ncclInt32, to, comm, stream)); // @send
    may_come_later(ncclGroupEnd());
#ifdef FIXED
    ask();
#endif
    MUST(cudaDeviceSynchronize()); // @wait
    EXPECT_INTS(into, 4, from);
    MUST(cudaFree(buf));
    MUST(cudaFree(into));
    MUST(cudaStreamDestroy(stream));
    may_come_later(ncclCommFinalize(comm));
    ask();
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
