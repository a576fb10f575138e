// A rank sends to itself, in a group, and in the same group to its neighbours.
#include "../check.h"

int main(void) {
    start();
    int *out = device_ints(4, rank);
    int *from_self = device_ints(4, -1);
    int *from_before = device_ints(4, -1);
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
    MUST(ncclGroupStart());
    MUST(ncclSend(out, 4, ncclInt32, next, comm, stream));
    MUST(ncclSend(out, 4, ncclInt32, rank, comm, stream));
    MUST(ncclRecv(from_self, 4, ncclInt32, rank, comm, stream));
    MUST(ncclRecv(from_before, 4, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(from_self, 4, rank);
    EXPECT_INTS(from_before, 4, before);
    MUST(cudaFree(out));
    MUST(cudaFree(from_self));
    MUST(cudaFree(from_before));
    finish();
    return 0;
}
