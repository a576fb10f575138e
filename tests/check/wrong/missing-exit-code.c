// Rank 1 leaves with an exit code and without a word while the others wait for a send.
// rank: 1
// alone: exit code 3
// exit: 3
// expect: NCCL CHECK: note: rank 1 ends the job by exit code 3; rank 0 had waited for
//     it for ... s in ncclRecv at @recv for ncclRecv(count 4, ncclInt32, from rank 1)
//     at @recv, operation 1 on communicator 1; rank 1 has not begun the matching ncclSend
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    if (rank == 0)
        MUST(ncclRecv(buf, 4, ncclInt32, 1, comm, stream)); // @recv
#ifndef FIXED
    if (rank == 1) {
        sleep(4);
        return 3;
    }
#else
    if (rank == 1)
        MUST(ncclSend(buf, 4, ncclInt32, 0, comm, stream));
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
