// The ranks are counted from 1, so the last one is outside. The real NCCL returns
// ncclInvalidArgument there, and waits for ever on the others.
// expect: NCCL CHECK: setup: rank @n is outside the communicator
// expect: rank @last on @host: ncclCommInitRank(rank @n of @n ranks) at @init
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
    MUST(ncclCommInitRank(&comm, nranks, id, mine)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
