// Rank 2 has left, rank 1 waits for it on a communicator that the two of them share, and
// so rank 1 never comes to the collective of all ranks. The real NCCL hangs.
// rank: 2
// alone: hangs
// ranks: 3 4 8
// expect: NCCL CHECK: missing:
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 2 on communicator 1; ranks 1, 2
//     have not begun this operation
// expect: rank 1 on @host: waits in ncclBroadcast at @broadcast for ncclBroadcast(count
//     4, ncclInt32, root 0) at @broadcast, operation 1 on communicator 2; rank 2 has
//     not begun this operation
// expect: rank 2 on @host: is in MPI_Finalize at @finalize
#include "../check.h"

int main(void) {
    start();
    ncclComm_t pair;
    int in_pair = rank == 1 || rank == 2;
    MUST(ncclCommSplit(comm, in_pair ? 0 : NCCL_SPLIT_NOCOLOR, rank, &pair, NULL));
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank == 2) {
        MPI_Finalize(); // @finalize
        return 0;
    }
#endif
    if (in_pair) {
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, pair, stream)); // @broadcast
        MUST(cudaStreamSynchronize(stream));                          // @sync_pair
        MUST(ncclCommDestroy(pair));
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));                                // @sync
    MUST(cudaFree(buf));
    finish();
    return 0;
}
