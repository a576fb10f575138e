// A log in pinned memory: each step copies one number into it, and the host prints those
// of the steps before. It reads one too many: the others, which are there, lie on the
// same page.
//
// expect: NCCL CHECK: race: the host reads pinned memory that a queued operation still
// expect: rank @any on @host: at @read, byte @any of 64 bytes made at @made
// expect: queued: cudaMemcpyAsync at @copy, which writes it
#include "../check.h"

enum { STEPS = 16 };

int main(void) {
    start();
    int *log, *sum = device_ints(1, 1), expected = 1;
    volatile int *seen;
    MUST(cudaMallocHost((void **)&log, STEPS * sizeof *log)); // @made
    seen = log;
    for (int step = 0; step < STEPS; step++) {
        MUST(ncclAllReduce(sum, sum, 1, ncclInt32, ncclMax, comm, stream));
        // @copy
        MUST(cudaMemcpyAsync(log + step, sum, sizeof *sum, cudaMemcpyDeviceToHost,
                             stream));
#ifdef FIXED
        const int upto = step;
#else
        const int upto = step < 3 ? step : step + 1;
#endif
        for (int i = 0; i < upto; i++)
            EXPECT(seen[i], expected); // @read
        MUST(cudaStreamSynchronize(stream));
    }
    MUST(cudaFree(sum));
    MUST(cudaFreeHost(log));
    finish();
    return 0;
}
