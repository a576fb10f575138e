// The collective is on the default stream, and so is cudaMemcpy: it waits by itself.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int result[4];
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, NULL));
    MUST(cudaMemcpy(result, buf, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result[3], sum_of_ranks());
    MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 0, comm, cudaStreamLegacy));
    MUST(cudaMemset(buf, 0, 4 * sizeof(int)));
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
