// Two ranks exchange a buffer: rank 0 has its send and its receive in a group, rank 1 has
// not. On two H100 that fails with "Message truncated".
// expect: NCCL CHECK: mismatch: a send and its receive are not grouped alike on
//     communicator 1
// expect: rank 0 on @host: ncclSend(count 4, ncclInt32, to rank 1) at @send
// expect: rank 1 on @host: ncclRecv(count 4, ncclInt32, from rank 0) at @recv
#include "../check.h"

static void grouped(const int *out, int *in, int peer) {
    MUST(ncclGroupStart());
    MUST(ncclSend(out, 4, ncclInt32, peer, comm, stream)); // @send
    MUST(ncclRecv(in, 4, ncclInt32, peer, comm, stream));
    MUST(ncclGroupEnd());
}

int main(void) {
    start();
    int *out = device_ints(4, rank), *in = device_ints(4, -1);
#ifdef FIXED
    if (rank < 2)
        grouped(out, in, 1 - rank);
#else
    if (rank == 0)
        grouped(out, in, 1);
    if (rank == 1) {
        MUST(ncclSend(out, 4, ncclInt32, 0, comm, stream));
        MUST(ncclRecv(in, 4, ncclInt32, 0, comm, stream)); // @recv
    }
#endif
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(in, 4, rank < 2 ? 1 - rank : -1);
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
