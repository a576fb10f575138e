// Two ranks of a communicator make an id for the ranks that are to join it. "This
// function must be called by only one rank" (NCCL User Guide, ncclCommGetUniqueId).
// rank: 1
// alone: exit code 0
// ranks: 3 4
// expect: NCCL CHECK: setup: a communicator that grows has got two unique ids
// expect: rank @any on @host: ncclCommGetUniqueId at @id
// expect: rank @any on @host: ncclCommGetUniqueId at @id
#include "../check.h"

int main(void) {
    start();
    int newest = nranks - 1;
    ncclUniqueId id, *own = rank == 0 ? &id : NULL; // the others pass none
    ncclComm_t old = NULL, grown = NULL;
    MUST(ncclCommSplit(comm, rank == newest ? NCCL_SPLIT_NOCOLOR : 0, rank, &old, NULL));
#ifdef FIXED
    if (rank == 0)
#else
    if (rank < 2)
#endif
        MUST(ncclCommGetUniqueId(old, &id)); // @id
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == newest)
        MUST(ncclCommGrow(NULL, nranks, &id, rank, &grown, NULL));
    else
        MUST(ncclCommGrow(old, nranks, own, -1, &grown, NULL));
    use_comm(grown);
    MUST(ncclCommDestroy(grown));
    if (old)
        MUST(ncclCommDestroy(old));
    finish();
    return 0;
}
