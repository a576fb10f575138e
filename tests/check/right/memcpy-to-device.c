// Four ways to be sure that data from the host has arrived before the collective: pinned
// memory, a wait for the default stream, a stream that waits for it, and the same stream.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t blocking;
    MUST(cudaStreamCreate(&blocking));
    int *buf = device_ints(4, 0), *pinned;
    const int values[4] = {rank, rank, rank, rank};
    MUST(cudaMallocHost((void **)&pinned, sizeof values));
    memcpy(pinned, values, sizeof values);
    MUST(cudaMemcpy(buf, pinned, sizeof values, cudaMemcpyHostToDevice));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaMemcpy(buf, values, sizeof values, cudaMemcpyHostToDevice));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaMemcpy(buf, values, sizeof values, cudaMemcpyHostToDevice));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, blocking));
    MUST(cudaStreamSynchronize(blocking));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaMemcpyAsync(buf, values, sizeof values, cudaMemcpyHostToDevice, stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(blocking));
    finish();
    return 0;
}
