// The ranks are counted from 1, so the last one is outside. The real NCCL returns
// ncclInvalidArgument there, at which nobody looks, and waits for ever on the others.
//
// rank: all
// alone: hangs
// expect: NCCL CHECK: note: rank @any: ncclCommInitRank at @init returned
// expect: NCCL CHECK: setup: ncclCommInitRank waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 1 of @n ranks) at @init
// expect: got an error at @init: ncclCommInitRank: rank @n of @n ranks
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
    int mine = rank + 1;
#endif
    ncclCommInitRank(&comm, nranks, id, mine); // @init
    if (comm)
        MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
