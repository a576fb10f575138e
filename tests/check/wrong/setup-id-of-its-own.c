// Every rank makes a unique id of its own, so every rank waits at an address where nobody
// else comes. The real NCCL waits for ever.
// rank: all
// alone: hangs
// expect: NCCL CHECK: setup: the ranks do not give the same unique id to ncclCommInitRank
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect: rank @last on @host: waits in ncclCommInitRank(rank @last of @n ranks) at @init
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
#ifdef FIXED
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    MUST(ncclGetUniqueId(&id));
#endif
    MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
