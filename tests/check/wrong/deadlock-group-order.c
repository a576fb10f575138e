// A group starts the calls of two communicators on one stream, and rank 1 begins with
// the other one. All ranks must give their calls in the same order, "no matter whether
// the operations are issued to the same or different communicators" (NCCL User Guide,
// "Group Operation Ordering Semantics").
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in cudaStreamSynchronize at ... on communicator 1;
//     rank 1 has not begun this operation
// expect: rank 1 on @host: waits in cudaStreamSynchronize at @wait for
//     ncclBroadcast(count 4, ncclInt32, root 0) at @other_first, operation 1 on
//     communicator 2
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    MUST(ncclGroupStart());
#ifndef FIXED
    if (rank == 1) {
        MUST(ncclBroadcast(b, b, 4, ncclInt32, 0, other, stream)); // @other_first
    }
#endif
    MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, comm, stream));
#ifndef FIXED
    if (rank != 1)
#endif
    {
        MUST(ncclBroadcast(b, b, 4, ncclInt32, 0, other, stream));
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream)); // @wait
    EXPECT_INTS(a, 4, sum_of_ranks());
    EXPECT_INTS(b, 4, 0);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
