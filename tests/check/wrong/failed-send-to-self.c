// Each rank sends to itself and receives it in the next call. Outside a group the first
// call fails, nobody looks at what it returns, and the data never moves.
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: ncclSend at @send returned ncclInvalidUsage (5): a
//     send to oneself
// expect: NCCL CHECK: note: rank @any: ncclRecv at @recv returned ncclInvalidUsage (5):
// expect: NCCL CHECK: note: rank 0: 2 calls returned errors, the first: ncclSend at
//     @send: a send to oneself, or a receive from oneself, without the other half
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank), *mine = device_ints(4, -1);
#ifdef FIXED
    MUST(ncclGroupStart());
#endif
    ncclSend(buf, 4, ncclInt32, rank, comm, stream);  // @send
    ncclRecv(mine, 4, ncclInt32, rank, comm, stream); // @recv
#ifdef FIXED
    MUST(ncclGroupEnd());
#endif
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    EXPECT_INTS(mine, 4, rank);
#endif
    MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return 0;
}
