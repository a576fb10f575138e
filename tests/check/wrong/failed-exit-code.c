// A send to oneself outside a group fails, and nobody looks at what it returns. What
// comes of it is wrong, so the program ends with an exit code, and without a word.
// rank: 1
// alone: exit code 7
// exit: 7
// expect: NCCL CHECK: note: rank 1: ncclSend at @send returned ncclInvalidUsage
//     (5): a send to oneself
// expect: NCCL CHECK: note: rank 1: ncclRecv at @recv returned ncclInvalidUsage (5):
// expect: NCCL CHECK: note: rank 1: 2 calls returned errors, the first: ncclSend at @send
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), *mine = device_ints(4, -1);
    int status = 0;
#ifndef FIXED
    if (rank == 1) {
        ncclSend(buf, 4, ncclInt32, rank, comm, stream);  // @send
        ncclRecv(mine, 4, ncclInt32, rank, comm, stream); // @recv
        status = 7;
    }
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return status;
}
