// A loop asks for the time between two events until there is one.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(1 << 20, 1);
    float ms = -1;
    cudaEvent_t before, after;
    MUST(cudaEventCreate(&before));
    MUST(cudaEventCreate(&after));
    MUST(cudaEventRecord(before, stream));
    usleep(rank * 20000);
    MUST(ncclAllReduce(buf, buf, 1 << 20, ncclInt32, ncclSum, comm, stream));
    MUST(cudaEventRecord(after, stream));
    while (cudaEventElapsedTime(&ms, before, after) == cudaErrorNotReady)
        usleep(100);
    EXPECT(ms >= 0, 1);
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaEventDestroy(before));
    MUST(cudaEventDestroy(after));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
