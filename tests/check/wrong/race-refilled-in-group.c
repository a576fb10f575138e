// Rows are packed into one buffer and sent, all inside one group: the copies are queued
// at once, the sends when the group ends. Every rank gets the last row.
//
// expect: NCCL CHECK: race: cudaMemcpyAsync overwrites, inside a group, what the group is
//     to send
// expect: rank @any on @host: cudaMemcpyAsync at @pack
// expect: written before: cudaMemcpyAsync at @pack
// expect: in the group: ncclSend(count 100, ncclInt32, to rank 0) at @send; it was
//     started at @start, and is open
#include "../check.h"

enum { COUNT = 100, BYTES = COUNT * sizeof(int) };

int main(void) {
    start();
    int *rows = device_ints(nranks * COUNT, 0), *got = device_ints(nranks * COUNT, -1),
        *packed = device_ints(nranks * COUNT, -1);
    for (int r = 0; r < nranks; r++) {
        int *row = device_ints(COUNT, rank + r);
        MUST(cudaMemcpy(rows + r * COUNT, row, BYTES, cudaMemcpyDeviceToDevice));
        MUST(cudaFree(row));
    }
    MUST(cudaDeviceSynchronize());
    MUST(ncclGroupStart()); // @start
    for (int r = 0; r < nranks; r++) {
        int *to = packed;
#ifdef FIXED
        to += r * COUNT;
#endif
        // @pack
        MUST(cudaMemcpyAsync(to, rows + r * COUNT, BYTES, cudaMemcpyDefault, stream));
        MUST(ncclSend(to, COUNT, ncclInt32, r, comm, stream)); // @send
        MUST(ncclRecv(got + r * COUNT, COUNT, ncclInt32, r, comm, stream));
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    for (int r = 0; r < nranks; r++)
        EXPECT_INTS(got + r * COUNT, COUNT, r + rank);
    MUST(cudaFree(rows));
    MUST(cudaFree(got));
    MUST(cudaFree(packed));
    finish();
    return 0;
}
