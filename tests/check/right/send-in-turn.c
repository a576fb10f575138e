// A chain without a group: rank 0 sends, each other rank receives and passes on. No rank
// sends and receives at once, so no group is needed. Each message has a size of its own,
// and two in a row to the same rank keep their order.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(100, rank == 0 ? 7 : -1);
    if (rank > 0) {
        MUST(ncclRecv(buf, 100, ncclInt32, rank - 1, comm, stream));
        MUST(ncclRecv(buf + 10, 3, ncclInt32, rank - 1, comm, stream));
    }
    if (rank < nranks - 1) {
        MUST(ncclSend(buf, 100, ncclInt32, rank + 1, comm, stream));
        MUST(ncclSend(buf, 3, ncclInt32, rank + 1, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 100, 7);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
