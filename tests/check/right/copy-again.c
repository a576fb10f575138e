// A copy fails. The program makes it anew on another stream and waits for that: the first
// one has read and written nothing.
//
// expect: NCCL CHECK: note: rank @any: cudaMemcpyAsync at @first returned
#include "../check.h"

int main(void) {
    start();
    int *buf, *numbers;
    cudaStream_t other = new_stream();
    MUST(cudaMalloc((void **)&buf, 4 * sizeof *buf));
    MUST(cudaMallocHost((void **)&numbers, 4 * sizeof *numbers));
    for (int i = 0; i < 4; i++)
        numbers[i] = 1;
    // From pinned memory a GPU copies whatever the direction is, if there is such a
    // direction.
    const enum cudaMemcpyKind no_direction = (enum cudaMemcpyKind)17;
    // @first
    if (cudaMemcpyAsync(buf, numbers, 16, no_direction, other) != cudaSuccess) {
        cudaGetLastError();
        numbers[0] = 1; // nothing reads it now
        MUST(cudaMemcpyAsync(buf, numbers, 16, cudaMemcpyHostToDevice, stream));
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaStreamDestroy(other));
    MUST(cudaFreeHost(numbers));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
