// Hundreds of operations are queued before anyone waits, and one rank is late with all of
// its own.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    if (rank == 1) {
        usleep(500000);
    }
    for (int i = 0; i < 300; i++) {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        if (i % 50 == 0) {
            MUST(ncclBroadcast(buf, buf, 4, ncclInt32, nranks - 1, comm, stream));
        }
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
