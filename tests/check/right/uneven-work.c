// Every rank does another amount of work of its own between the collectives: copies,
// clears, events, sleeps, buffers that come and go. Only the collectives have to agree.
#include "../check.h"

int main(void) {
    start();
    cudaStream_t own = new_stream();
    int *buf = device_ints(4, rank);
    unsigned seed = (unsigned)rank + 1;
    for (int round = 0; round < 8; round++) {
        int extra = rand_r(&seed) % (3 * rank + 1);
        for (int i = 0; i < extra; i++) {
            int *scratch = device_ints(10 + i, i);
            MUST(cudaMemsetAsync(scratch, 0, 10 * sizeof(int), own));
            MUST(cudaStreamSynchronize(own));
            EXPECT_INTS(scratch, 10, 0);
            MUST(cudaFree(scratch));
            usleep(rand_r(&seed) % 2000);
        }
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        if (rank % 2 == round % 2) {
            MUST(cudaStreamSynchronize(stream));
        }
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(own));
    finish();
    return 0;
}
