// The host fills a row too many of pinned memory. Nothing crashes: it overwrites what
// comes after it, whatever that is.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: the host has written past the end of a buffer
// expect: rank @any on @host: found by cudaFreeHost at @free
// expect: the buffer: 4096 bytes made by cudaMallocHost at @made; written was byte 4096
#include "../check.h"

enum { ROWS = 64, COLUMNS = 16 };

int main(void) {
    start();
    int *rows, *few, *buf = device_ints(ROWS * COLUMNS, 0);
    size_t bytes = ROWS * COLUMNS * sizeof(int);
    MUST(cudaMallocHost((void **)&rows, bytes)); // @made
    MUST(cudaMallocManaged((void **)&few, 3 * sizeof(int), cudaMemAttachGlobal));
    int last = ROWS;
#ifdef FIXED
    last = ROWS - 1;
#endif
    for (int r = 0; r <= last; r++)
        for (int c = 0; c < COLUMNS; c++)
            rows[r * COLUMNS + c] = 1;
    for (int i = 0; i < 3; i++)
        few[i] = i;
    MUST(cudaMemcpyAsync(buf, rows, bytes, cudaMemcpyHostToDevice, stream));
    MUST(ncclAllReduce(buf, buf, ROWS * COLUMNS, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllReduce(few, few, 3, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(few[2], 2 * nranks);
    EXPECT_INTS(buf, ROWS * COLUMNS, nranks);
    MUST(cudaFreeHost(rows)); // @free
    MUST(cudaFree(few));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
