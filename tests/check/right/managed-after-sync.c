// Managed memory is written by the host, summed by NCCL and read by the host, over and
// over, with a synchronisation each time.
#include "../check.h"

int main(void) {
    start();
    enum { COUNT = 3000 }; // more than one page
    int *buf;
    MUST(cudaMallocManaged((void **)&buf, COUNT * sizeof(int), cudaMemAttachGlobal));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            buf[i] = rank + round + i;
        }
        MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            EXPECT(buf[i], sum_of_ranks() + nranks * (round + i));
        }
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
