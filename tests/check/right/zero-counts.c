// Every operation with count 0, at the start of a buffer and at its very end: nothing
// moves and nothing is written.
#include "../check.h"

static void nothing(int *buf) {
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
    MUST(ncclBroadcast(buf, buf, 0, ncclInt32, 0, comm, stream));
    MUST(ncclReduce(buf, buf, 0, ncclInt32, ncclSum, nranks - 1, comm, stream));
    MUST(ncclAllReduce(buf, buf, 0, ncclFloat32, ncclMax, comm, stream));
    MUST(ncclAllGather(buf, buf, 0, ncclInt8, comm, stream));
    MUST(ncclReduceScatter(buf, buf, 0, ncclFloat64, ncclProd, comm, stream));
    MUST(ncclGroupStart());
    MUST(ncclSend(buf, 0, ncclInt32, next, comm, stream));
    MUST(ncclRecv(buf, 0, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
}

int main(void) {
    start();
    int *buf = device_ints(4, 42);
    nothing(buf);
    nothing(buf + 4); // one past the end, as the last part of an uneven division is
    MUST(cudaMemcpyAsync(buf, buf, 0, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaMemsetAsync(buf, 0, 0, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 42);
    MUST(cudaFree(buf));
    MUST(cudaFree(NULL));
    finish();
    return 0;
}
