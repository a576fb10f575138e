// Two communicators are destroyed in different orders. ncclCommDestroy waits for the
// other ranks of the node, if the communicator was used: the real NCCL hangs over NVLink
// and shared memory. Over sockets the program ends.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclCommDestroy at @destroy, of communicator 1;
//     rank 1 has not begun the same call
// expect: rank 1 on @host: waits in ncclCommDestroy at @destroy, of communicator 2;
//     rank
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    use_comm(comm);
    use_comm(other);
    MUST(cudaStreamDestroy(stream));
#ifdef FIXED
    const int swapped = 0;
#else
    const int swapped = rank == 1;
#endif
    MUST(ncclCommDestroy(swapped ? other : comm)); // @destroy
    MUST(ncclCommDestroy(swapped ? comm : other));
    MPI_Finalize();
    return 0;
}
