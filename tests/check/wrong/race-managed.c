// Managed memory is the same pointer on both sides, but the host has to wait for the
// collective like for any other. On a GPU the host sees the old value, or half of the
// new.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: the host reads managed memory that a queued operation still
//     uses
// expect: rank @any on @host: at @read, byte 12 of 16 bytes made at @malloc
// expect: queued: ncclAllReduce... at @allreduce, ... which writes it
#include "../check.h"

int main(void) {
    start();
    int *buf;
    // @malloc
    MUST(cudaMallocManaged((void **)&buf, 4 * sizeof(int), cudaMemAttachGlobal));
    for (int i = 0; i < 4; i++) {
        buf[i] = rank;
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    EXPECT(buf[3], sum_of_ranks()); // @read
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
