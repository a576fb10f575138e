// A buffer is registered with a communicator that does not block and is not there yet.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: setup: ncclCommRegister uses a communicator that is not ready
// expect: rank @any on @host: ncclCommRegister at @register
// expect: made by ncclCommInitRankConfig at @init, which does not wait for the others
#include "../check.h"

int main(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    void *handle = NULL, *buf;
    start_mpi();
    start_device();
    config.blocking = 0;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclCommInitRankConfig(&comm, nranks, id, rank, &config); // @init
    MUST(ncclMemAlloc(&buf, 4096));
#ifdef FIXED
    until_ready(comm);
#endif
    ncclCommRegister(comm, buf, 4096, &handle); // @register
    until_ready(comm);
    if (handle)
        MUST(ncclCommDeregister(comm, handle));
    MUST(ncclMemFree(buf));
    ncclCommFinalize(comm);
    until_ready(comm);
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
