// Rank 0 sends, and rank 1 has forgotten to receive. The real NCCL waits for ever in the
// synchronisation of rank 0.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: a send that no receive meets, on communicator 1
// expect: rank 0 on @host: waits in ncclSend at @send for ncclSend(count 4, ncclInt32,
//     to rank 1) at @send, operation 1 on communicator 1; rank 1 has not begun the
//     matching ncclRecv
// expect: rank 1 on @host: waits in ncclCommDestroy at @finish, after 0 operations on
//     the communicator
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    if (rank == 0) {
        MUST(ncclSend(buf, 4, ncclInt32, 1, comm, stream)); // @send
    }
#ifdef FIXED
    if (rank == 1) {
        MUST(ncclRecv(buf, 4, ncclInt32, 0, comm, stream));
    }
#endif
    MUST(cudaStreamSynchronize(stream)); // @sync
    MUST(cudaFree(buf));
    finish();
    return 0;
}
