// The unique id stays on rank 0: the broadcast is forgotten. The real NCCL waits for ever
// on rank 0 and returns a cryptic network error on the others.
// rank: all
// alone: a call returns 3
// expect: NCCL CHECK: setup: the ranks do not give the same unique id to ncclCommInitRank
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect: MPI_Bcast
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
#ifdef FIXED
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#endif
    MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
