// Buffers of every size come and go, so addresses come back in another role: as another
// buffer, of another stream, in another size.
#include "../check.h"

int main(void) {
    start();
    for (int round = 0; round < 10; round++) {
        int n = 1000 - 99 * round;
        cudaStream_t own = new_stream();
        int *buf = device_ints(n, rank);
        MUST(ncclAllReduce(buf, buf, n, ncclInt32, ncclSum, comm, own));
        MUST(cudaStreamSynchronize(own));
        EXPECT_INTS(buf, n, sum_of_ranks());
        MUST(cudaFree(buf));
        MUST(cudaStreamDestroy(own));
    }
    finish();
    return 0;
}
