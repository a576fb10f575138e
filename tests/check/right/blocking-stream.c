// A stream of cudaStreamCreate is ordered with the default stream, so cudaMemcpy waits
// for it and an operation on it waits for cudaMemset. Two such streams are not ordered
// with each other, but through the default stream they are.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t first, second;
    MUST(cudaStreamCreate(&first));
    MUST(cudaStreamCreate(&second));
    int *buf = device_ints(4, rank);
    int *copy = device_ints(4, -1);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, first));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaMemset(buf, 0, 4 * sizeof(int)));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, first));
    MUST(cudaMemsetAsync(copy, 0, 4 * sizeof(int), NULL));
    MUST(cudaMemcpyAsync(copy, buf, 4 * sizeof(int), cudaMemcpyDeviceToDevice, second));
    EXPECT_INTS(copy, 4, 0);
    MUST(cudaFree(buf));
    MUST(cudaFree(copy));
    MUST(cudaStreamDestroy(first));
    MUST(cudaStreamDestroy(second));
    finish();
    return 0;
}
