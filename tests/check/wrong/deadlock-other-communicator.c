// Rank 1 takes the wrong one of two communicators that both hold all ranks. The real NCCL
// waits for ever on both.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: ... at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: ... at @allreduce, operation 1 on communicator 2; @others
//     not begun this operation
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    int *buf = device_ints(4, rank);
#ifdef FIXED
    ncclComm_t chosen = comm;
#else
    ncclComm_t chosen = rank == 1 ? other : comm;
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, chosen, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
