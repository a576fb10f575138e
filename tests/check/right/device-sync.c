// cudaDeviceSynchronize waits for every stream of the device, and an event waited for on
// the host covers all that its stream did before.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t other = new_stream();
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemsetAsync(b, 0, 4 * sizeof(int), other));
    MUST(cudaDeviceSynchronize());
    EXPECT_INTS(a, 4, sum_of_ranks());
    EXPECT_INTS(b, 4, 0);
    MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclMax, comm, stream));
    MUST(cudaMemsetAsync(b, 0xff, 4 * sizeof(int), stream));
    MUST(cudaEventRecord(done, stream));
    MUST(cudaEventSynchronize(done));
    EXPECT_INTS(a, 4, sum_of_ranks());
    EXPECT_INTS(b, 4, -1);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaEventDestroy(done));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
