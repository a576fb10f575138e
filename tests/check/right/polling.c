// The host asks instead of waiting: cudaStreamQuery or cudaEventQuery until it says done.
// That is a synchronisation too.
#include "../check.h"

int main(void) {
    start();
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    int *buf = device_ints(4, rank);
    for (int round = 0; round < 4; round++) {
        if (rank == round % nranks) {
            usleep(50000);
        }
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        MUST(cudaEventRecord(done, stream));
        cudaError_t state;
        do {
            state = round % 2 ? cudaStreamQuery(stream) : cudaEventQuery(done);
        } while (state == cudaErrorNotReady);
        MUST(state);
        EXPECT_INTS(buf, 4, nranks - 1);
    }
    MUST(cudaEventDestroy(done));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
