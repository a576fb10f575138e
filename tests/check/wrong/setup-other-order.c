// Two communicators of all ranks, which rank 1 makes in a different order. Each waits for
// the others, in the wrong place.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: setup: the ranks create communicators in a different order
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @first
// expect: rank 1 on @host: waits in ncclCommInitRank(rank 1 of @n ranks) at @first
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    ncclComm_t comms[2];
    ncclUniqueId ids[2];
    if (rank == 0) {
        MUST(ncclGetUniqueId(&ids[0]));
        MUST(ncclGetUniqueId(&ids[1]));
    }
    MPI_Bcast(ids, sizeof ids, MPI_BYTE, 0, MPI_COMM_WORLD);
#ifdef FIXED
    int first = 0;
#else
    int first = rank == 1;
#endif
    MUST(ncclCommInitRank(&comms[first], nranks, ids[first], rank)); // @first
    MUST(ncclCommInitRank(&comms[!first], nranks, ids[!first], rank));
    MUST(ncclCommDestroy(comms[0]));
    MUST(ncclCommDestroy(comms[1]));
    MPI_Finalize();
    return 0;
}
