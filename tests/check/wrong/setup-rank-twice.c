// Each process has two devices of a communicator of its own, and calls itself rank 0 on
// both.
// rank: all
// alone: hangs
// expect: NCCL CHECK: setup: one process calls itself rank 0 twice
// expect: rank @any on @host: ncclCommInitRank(rank 0 of 2 ranks, GPU @any) at @init
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    int devices, device;
    ncclComm_t comms[2];
    ncclUniqueId id;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaGetDevice(&device));
    MUST(ncclGetUniqueId(&id));
    MUST(ncclGroupStart());
    for (int i = 0; i < 2; i++) {
#ifdef FIXED
        int mine = i;
#else
        int mine = 0;
#endif
        MUST(cudaSetDevice((device + i) % devices));
        MUST(ncclCommInitRank(&comms[i], 2, id, mine)); // @init
    }
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
    for (int i = 0; i < 2; i++)
        MUST(ncclCommDestroy(comms[i]));
    MUST(ncclGroupEnd());
    MPI_Finalize();
    return 0;
}
