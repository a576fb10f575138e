// Pinned memory is freed while a copy into it is queued. On a GPU cudaFreeHost may wait,
// or the copy writes into memory that is somebody else's by then.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: cudaFreeHost frees a buffer that a queued operation still
//     uses
// expect: rank @any on @host: cudaFreeHost at @free
// expect: queued: cudaMemcpyAsync... at @copy
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int *pinned;
    MUST(cudaMallocHost((void **)&pinned, 16));
    MUST(cudaMemcpyAsync(pinned, buf, 16, cudaMemcpyDeviceToHost, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST(cudaFreeHost(pinned)); // @free
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
