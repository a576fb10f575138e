// The first two ranks both say that they are rank 0. The real NCCL hangs in the set-up.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: setup: two processes call themselves rank 0
// expect: rank 0 on @host: ncclCommInitRank(rank 0 of @n ranks, GPU 0) at @init
// expect: rank 1 on @host: ncclCommInitRank(rank 0 of @n ranks, GPU 1) at @init
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#ifdef FIXED
    int mine = rank;
#else
    int mine = rank == 1 ? 0 : rank;
#endif
    MUST(ncclCommInitRank(&comm, nranks, id, mine)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
