// Rank 0 has the unique id already, so it leaves out the broadcast, and the others wait
// for it. Rank 0 waits for them in ncclCommInitRank.
// rank: 0
// alone: hangs
// expect: NCCL CHECK: setup: ncclCommInitRank waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
// expect: rank 1 on @host: waits in MPI_Bcast at @bcast
// expect: Hint: a rank is in MPI_Bcast
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
#ifndef FIXED
    if (rank != 0)
#endif
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD); // @bcast
    MUST(ncclCommInitRank(&comm, nranks, id, rank));            // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
