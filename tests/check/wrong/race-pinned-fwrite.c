// A download is written to a file before it is known to be done. The file gets the old
// values, or some of them.
// expect: NCCL CHECK: race: fwrite reads a buffer that a queued operation still uses
// expect: rank @any on @host: fwrite at @write
// expect: queued: cudaMemcpyAsync at @copy
#include "../check.h"

enum { N = 20000 };

int main(void) {
    start();
    int *buf = device_ints(N, rank), *pinned;
    FILE *file = fopen("/dev/null", "w");
    MUST(cudaMallocHost((void **)&pinned, N * sizeof(int)));
    // @copy
    MUST(cudaMemcpyAsync(pinned, buf, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    EXPECT(fwrite(pinned, sizeof(int), N, file), N); // @write
    MUST(cudaStreamSynchronize(stream));
    fclose(file);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
