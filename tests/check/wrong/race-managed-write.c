// The host fills managed memory with the next values while a collective still sends the
// last ones from it. On a GPU some ranks get a mixture, or the program ends with "bus
// error".
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: the host writes to managed memory that a queued operation
//     still uses
// expect: rank @any on @host: at @write, byte 8 of 16 bytes made at @malloc
// expect: queued: ncclAllReduce... at @allreduce, ... which reads it
#include "../check.h"

int main(void) {
    start();
    int *values, *sum = device_ints(4, 0);
    MUST(cudaMallocManaged((void **)&values, 16, cudaMemAttachGlobal)); // @malloc
    for (int i = 0; i < 4; i++) {
        values[i] = rank;
    }
    MUST(ncclAllReduce(values, sum, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    values[2] = -1; // @write
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(sum, 4, sum_of_ranks());
    MUST(cudaFree(values));
    MUST(cudaFree(sum));
    finish();
    return 0;
}
