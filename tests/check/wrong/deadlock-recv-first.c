// Ranks 0 and 1 exchange, and both receive before they send, without a group. The real
// NCCL hangs.
// rank: all
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclRecv at @recv for ncclRecv(count 4, ncclInt32,
//     from rank 1) at @recv
// expect: rank 1 on @host: waits in ncclRecv at @recv for ncclRecv(count 4, ncclInt32,
//     from rank 0) at @recv
// expect: The cycle: rank 0 waits for rank 1, which waits for rank 0.
#include "../check.h"

int main(void) {
    start();
    int *out = device_ints(4, rank);
    int *in = device_ints(4, -1);
    if (rank < 2) {
#ifdef FIXED
        MUST(ncclGroupStart());
#endif
        MUST(ncclRecv(in, 4, ncclInt32, 1 - rank, comm, stream)); // @recv
        MUST(ncclSend(out, 4, ncclInt32, 1 - rank, comm, stream));
#ifdef FIXED
        MUST(ncclGroupEnd());
#endif
    }
    MUST(cudaStreamSynchronize(stream)); // @sync
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
