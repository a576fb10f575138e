// Calls with a wrong argument return their documented error, the program asks for it, and
// goes on. That is no reason to say more.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    EXPECT(ncclBroadcast(buf, buf, 4, ncclInt32, nranks, comm, stream),
           ncclInvalidArgument);
    ncclGetLastError(NULL);
    EXPECT(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, NULL, stream),
           ncclInvalidArgument);
    ncclGetLastError(NULL);
    EXPECT(cudaSetDevice(-1), cudaErrorInvalidDevice);
    cudaGetLastError();
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
