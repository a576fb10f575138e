// The unique id is kept as a string. It is bytes, and some of them are 0: what lies
// after the first of these is not copied. The real NCCL waits for ever, or fails to
// connect.
//
// rank: 1
// alone: hangs
// expect: NCCL CHECK: setup: the ranks do not give the same unique id to ncclCommInitRank
// expect: rank 0 on @host: waits in ncclCommInitRank(rank 0 of @n ranks) at @init
#include "../check.h"

struct settings {
    ncclUniqueId id;
    int device;
};

int main(void) {
    start_mpi();
    start_device();
    struct settings settings = {{{0}}, 0};
    ncclUniqueId id;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
#ifdef FIXED
    settings.id = id;
#else
    if (rank > 0)
        strncpy(settings.id.internal, id.internal, sizeof id.internal - 1);
    else
        settings.id = id;
#endif
    MUST(ncclCommInitRank(&comm, nranks, settings.id, rank)); // @init
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return 0;
}
