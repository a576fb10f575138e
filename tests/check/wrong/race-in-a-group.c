// The sends of a group need what its collective writes. A group starts its calls
// together, so the real NCCL may send before it has summed.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: two calls of one group use the same memory
// expect: rank @any on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce
// expect: ncclSend(count 4, ncclInt32, to rank @any) at @send
// expect: 16 bytes of device memory
#include "../check.h"

int main(void) {
    start();
    int *sum = device_ints(4, rank);
    int *in = device_ints(4, -1);
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(sum, sum, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
#endif
    MUST(ncclSend(sum, 4, ncclInt32, next, comm, stream)); // @send
    MUST(ncclRecv(in, 4, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(in, 4, sum_of_ranks());
    MUST(cudaFree(sum));
    MUST(cudaFree(in));
    finish();
    return 0;
}
