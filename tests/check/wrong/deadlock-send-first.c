// Every rank sends to the next before it receives from the one before, without a group. A
// send ends when it is received, so nobody gets to its receive: the real NCCL hangs. Over
// sockets ncclSend returns an error on two ranks.
// rank: all
// alone: hangs
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclSend at @send for ncclSend(count 4, ncclInt32,
//     to rank 1) at @send, operation 1 on communicator 1; rank 1 has not begun the
//     matching ncclRecv
// expect: rank @last on @host: waits in ncclSend at @send for ncclSend(count 4,
//     ncclInt32, to rank 0) at @send, operation 1 on communicator 1; rank 0 has not
//     begun the matching ncclRecv
// expect 2: The cycle: rank 0 waits for rank 1, which waits for rank 0.
// expect 3: The cycle: rank 0 waits for rank 1, which waits for rank 2, which waits for
//     rank 0.
// expect: The first send and receive between two ranks connect them: the call itself
//     waits for both.
#include "../check.h"

int main(void) {
    start();
    int *out = device_ints(4, rank);
    int *in = device_ints(4, -1);
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
#ifdef FIXED
    MUST(ncclGroupStart());
#endif
    MUST(ncclSend(out, 4, ncclInt32, next, comm, stream)); // @send
    MUST(ncclRecv(in, 4, ncclInt32, before, comm, stream));
#ifdef FIXED
    MUST(ncclGroupEnd());
#endif
    MUST(cudaStreamSynchronize(stream)); // @sync
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
