// Rank 1 receives fewer elements than rank 0 sends. The real NCCL moves the smaller part
// (NCCL 2.28 over sockets: it hangs).
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: a send and its receive give different counts on
//     communicator 1
// expect: rank 0 on @host: ncclSend(count 4, ncclInt32, to rank 1) at @send
// expect: rank 1 on @host: ncclRecv(count 3, ncclInt32, from rank 0) at @recv
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    int room = 4;
#else
    int room = 3;
#endif
    if (rank == 0) {
        MUST(ncclSend(buf, 4, ncclInt32, 1, comm, stream)); // @send
    } else if (rank == 1) {
        MUST(ncclRecv(buf, room, ncclInt32, 0, comm, stream)); // @recv
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
