// Two communicators of all ranks, and one unique id for both.
// rank: all
// alone: hangs
// expect: NCCL CHECK: setup: one unique id is used for two communicators
// expect: ncclCommInitRank(rank @any of @n ranks, GPU @same) at @first
// expect: ncclCommInitRank(rank @any of @n ranks, GPU @same) at @second
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclUniqueId id;
    ncclComm_t second;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    MUST(ncclCommInitRank(&comm, nranks, id, rank)); // @first
#ifdef FIXED
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#endif
    MUST(ncclCommInitRank(&second, nranks, id, rank)); // @second
    MUST(ncclCommDestroy(second));
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
