// A host function in the stream runs between two operations, and what it has seen is read
// after the synchronisation.
#include "../check.h"

static int seen, calls;

static void look(void *pinned) {
    seen = *(int *)pinned;
    calls++;
}

int main(void) {
    start();
    int *pinned;
    MUST(cudaMallocHost((void **)&pinned, sizeof(int)));
    *pinned = -1;
    int *buf = device_ints(1, rank);
    MUST(ncclAllReduce(buf, buf, 1, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemcpyAsync(pinned, buf, sizeof(int), cudaMemcpyDeviceToHost, stream));
    MUST(cudaLaunchHostFunc(stream, look, pinned));
    MUST(cudaMemsetAsync(buf, 0, sizeof(int), stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(calls, 1);
    EXPECT(seen, sum_of_ranks());
    EXPECT_INTS(buf, 1, 0);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
