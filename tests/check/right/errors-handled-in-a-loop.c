// A call fails, with a wrong root, and the program looks. It stands in the same line as
// one that went well before: that one has happened all the same.
// expect: NCCL CHECK: note: rank @any: ncclBroadcast at @broadcast returned
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    for (int root = 0; root <= rank % 2 * nranks; root += nranks) {
        // @broadcast
        ncclResult_t result = ncclBroadcast(buf, buf, 4, ncclInt32, root, comm, stream);
        EXPECT(result, root == 0 ? ncclSuccess : ncclInvalidArgument);
        if (result != ncclSuccess) {
            ncclGetLastError(comm);
        }
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
    use_comm(comm);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
