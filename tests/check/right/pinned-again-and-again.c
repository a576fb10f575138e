// Pinned memory comes and goes, and its addresses come again. What is still being copied
// when it is freed is waited for by cudaFreeHost; the next who has the address may write.
#include "../check.h"

enum { ROUNDS = 18000, BYTES = 1 << 20 };

int main(void) {
    start();
    int *buf = device_ints(BYTES / sizeof(int), 0);
    const double end = MPI_Wtime() + 10; // a GPU's driver takes its time over each
    for (int i = 0; i < ROUNDS && (i < 4 || MPI_Wtime() < end); i++) {
        int *pinned;
        size_t bytes = i < 15000 ? BYTES : BYTES / 2;
        MUST(cudaMallocHost((void **)&pinned, bytes));
        pinned[0] = i;
        if (i < 4) {
            MUST(cudaMemcpyAsync(buf, pinned, bytes, cudaMemcpyHostToDevice, 0));
        }
        MUST(cudaFreeHost(pinned));
    }
    EXPECT_INTS(buf, 1, 3);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
