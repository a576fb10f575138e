// All ranks reduce and scatter in place, but into the start of the buffer instead of into
// their own part of it. The real NCCL overwrites elements that it has not yet summed.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the buffers of ncclReduceScatter overlap, and not as in
//     place demands
// expect: rank @any on @host: ncclReduceScatter(count 4, ncclInt32, ncclSum) at @scatter,
//     rank @same of the @n ranks of communicator 1
// expect: recvbuff == sendbuff + rank * recvcount
#include "../check.h"

int main(void) {
    start();
    int *all = device_ints(4 * nranks, rank);
#ifdef FIXED
    int *mine = all + 4 * rank;
#else
    int *mine = all;
#endif
    MUST(ncclReduceScatter(all, mine, 4, ncclInt32, ncclSum, comm, stream)); // @scatter
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(all));
    finish();
    return 0;
}
