// MPI_Bcast carries as many bytes as a pointer has, not as the unique id has: the other
// ranks have its beginning only. The real NCCL waits for ever, or fails to connect.
// rank: all
// alone: a call returns 3
// expect: NCCL CHECK: setup: the ranks do not give the same unique id to ncclCommInitRank
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect: rank @last on @host: waits in ncclCommInitRank(rank @last of @n ranks) at @init
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id = {{0}}, *ours = &id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(ours));
    }
#ifdef FIXED
    MPI_Bcast(ours, sizeof *ours, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    MPI_Bcast(ours, sizeof ours, MPI_BYTE, 0, MPI_COMM_WORLD);
#endif
    MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
