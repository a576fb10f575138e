// What is received is copied on inside the group that receives it: the copy is queued at
// once, the receive when the group ends. The real NCCL copies what was there before.
//
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: cudaMemcpyAsync reads, inside a group, what the group is to
//     write
// expect: rank @any on @host: cudaMemcpyAsync at @copy
// expect: in the group: ncclRecv(count 100, ncclInt32, from rank @any) at @recv; it was
//     started at @start, and is open
// expect: Hint: the calls of a group are queued by ncclGroupEnd
#include "../check.h"

enum { COUNT = 100 };

int main(void) {
    start();
    int *mine = device_ints(COUNT, rank), *block = device_ints(COUNT, -1),
        *all = device_ints(COUNT, -1);
    int from = (rank + nranks - 1) % nranks;
    MUST(ncclGroupStart()); // @start
    MUST(ncclSend(mine, COUNT, ncclInt32, (rank + 1) % nranks, comm, stream));
    MUST(ncclRecv(block, COUNT, ncclInt32, from, comm, stream)); // @recv
#ifdef FIXED
    MUST(ncclGroupEnd());
#endif
    const size_t bytes = COUNT * sizeof(int);
    MUST(cudaMemcpyAsync(all, block, bytes, cudaMemcpyDefault, stream)); // @copy
#ifndef FIXED
    MUST(ncclGroupEnd());
#endif
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(all, COUNT, from);
    MUST(cudaFree(mine));
    MUST(cudaFree(block));
    MUST(cudaFree(all));
    finish();
    return 0;
}
