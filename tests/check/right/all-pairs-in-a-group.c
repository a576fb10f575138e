// Everybody exchanges with everybody in one group. Each rank names its partners in an
// order of its own, and each pair has a size of its own.
#include "../check.h"

int main(void) {
    start();
    int *out = device_ints(nranks * 16, rank);
    int *in = device_ints(nranks * 16, -1);
    MUST(ncclGroupStart());
    for (int i = 0; i < nranks; i++) {
        int peer = (rank + i) % nranks;
        int count = 1 + (rank + peer) % 16;
        if (rank % 2 == 0) {
            MUST(ncclSend(out + 16 * peer, count, ncclInt32, peer, comm, stream));
        }
        MUST(ncclRecv(in + 16 * peer, count, ncclInt32, peer, comm, stream));
        if (rank % 2 == 1) {
            MUST(ncclSend(out + 16 * peer, count, ncclInt32, peer, comm, stream));
        }
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    for (int peer = 0; peer < nranks; peer++) {
        int count = 1 + (rank + peer) % 16;
        EXPECT_INTS(in + 16 * peer, count, peer);
        EXPECT_INTS(in + 16 * peer + count, 16 - count, -1);
    }
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
