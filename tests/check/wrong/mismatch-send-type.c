// Rank 0 sends two 64-bit integers, rank 1 receives four 32-bit ones. The bytes agree, so
// the real NCCL says nothing and the numbers are wrong.
// rank: 0
// alone: exit code 0
// expect: NCCL CHECK: mismatch: a send and its receive give different ... on communicator
//     1
// expect: rank 0 on @host: ncclSend(count 2, ncclInt64, to rank 1) at @send
// expect: rank 1 on @host: ncclRecv(count 4, ncclInt32, from rank 0) at @recv
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    if (rank == 0) {
#ifdef FIXED
        MUST(ncclSend(buf, 4, ncclInt32, 1, comm, stream));
#else
        MUST(ncclSend(buf, 2, ncclInt64, 1, comm, stream)); // @send
#endif
    } else if (rank == 1) {
        MUST(ncclRecv(buf, 4, ncclInt32, 0, comm, stream)); // @recv
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
