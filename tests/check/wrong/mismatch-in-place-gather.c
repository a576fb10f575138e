// All ranks gather in place, but from the start of the buffer instead of from their own
// part of it. Only rank 0 is right; on the others sendbuff and recvbuff overlap, and the
// real NCCL gathers whatever is there first.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the buffers of ncclAllGather overlap, and not as in place
//     demands
// expect: rank @any on @host: ncclAllGather(count 4, ncclInt32) at @allgather, rank @same
//     of the @n ranks of communicator 1
// expect: sendbuff == recvbuff + rank * sendcount
#include "../check.h"

int main(void) {
    start();
    int *all = device_ints(4 * nranks, rank);
#ifdef FIXED
    int *mine = all + 4 * rank;
#else
    int *mine = all;
#endif
    MUST(ncclAllGather(mine, all, 4, ncclInt32, comm, stream)); // @allgather
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(all));
    finish();
    return 0;
}
