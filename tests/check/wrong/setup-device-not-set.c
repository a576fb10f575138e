// cudaSetDevice is forgotten, so all ranks are on device 0. The real NCCL returns
// ncclInvalidUsage, "Duplicate GPU detected" or "Multiple Ranks are using the same GPU".
// rank: all
// alone: a call returns 5
// expect: NCCL CHECK: setup: two ranks are bound to the same GPU, 0000:01:00.0 of @host
// expect: rank ... on @host: ncclCommInitRank(rank ... of @n ranks, GPU 0) at @init
// expect: cudaSetDevice(rank % deviceCount)
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
    MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
