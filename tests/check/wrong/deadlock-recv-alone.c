// Every rank passes its data to the rank before it, and the last one has forgotten its
// send. The real NCCL waits for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: deadlock: a receive that no send meets, on communicator 1
// expect: rank ... on @host: waits in ncclGroupEnd at @group for ncclRecv(count 4,
//     ncclInt32, from rank @last) at @recv
// expect: rank @last on @host: waits in ncclCommDestroy at @finish
#include "../check.h"

int main(void) {
    start();
    int *in = device_ints(4, -1);
    int *out = device_ints(4, rank);
#ifdef FIXED
    int to = rank - 1;
#else
    int to = rank == nranks - 1 ? -1 : rank - 1;
#endif
    MUST(ncclGroupStart());
    if (rank < nranks - 1) {
        MUST(ncclRecv(in, 4, ncclInt32, rank + 1, comm, stream)); // @recv
    }
    if (to >= 0) {
        MUST(ncclSend(out, 4, ncclInt32, to, comm, stream));
    }
    MUST(ncclGroupEnd());                // @group
    MUST(cudaStreamSynchronize(stream)); // @sync
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    finish();
    return 0;
}
