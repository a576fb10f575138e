// Rank 0 groups its send and receive, rank 1 calls them one after the other. NCCL
// connects two ranks with the first group or call of each: it hangs here, or fails with
// "Message truncated" (issue 1279 of NVIDIA/nccl).
// rank: 1
// alone: a call returns 3
// expect: NCCL CHECK: mismatch: a send and its receive are not grouped alike on
//     communicator 1
// expect: rank 0 on @host: ncclRecv(count 4, ncclInt32, from rank 1) at @grouped
// expect: rank 1 on @host: ncclRecv(count 4, ncclInt32, from rank 0) at @apart
// expect: Hint: one rank has its first send to the other and its first receive from it
#include "../check.h"

#include <stdbool.h>

int main(void) {
    start();
    int *out = device_ints(4, rank), *in = device_ints(4, 0);
#ifdef FIXED
    bool groups = rank < 2;
#else
    bool groups = rank == 0;
#endif
    if (groups) {
        MUST(ncclGroupStart());
        MUST(ncclSend(out, 4, ncclInt32, 1 - rank, comm, stream));
        MUST(ncclRecv(in, 4, ncclInt32, 1 - rank, comm, stream)); // @grouped
        MUST(ncclGroupEnd());
    } else if (rank == 1) {
        MUST(ncclSend(out, 4, ncclInt32, 0, comm, stream));
        MUST(ncclRecv(in, 4, ncclInt32, 0, comm, stream)); // @apart
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
