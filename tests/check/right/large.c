// 12 MB and one element: no message is too long to be sent in pieces, and the ends of the
// buffers are the ends of the allocations.
#include "../check.h"

int main(void) {
    start();
    int n = 3 * 1000 * 1000 + 1;
    int *out = device_ints(n, rank);
    int *in = device_ints(n, -1);
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
    MUST(ncclGroupStart());
    MUST(ncclSend(out, n, ncclInt32, next, comm, stream));
    MUST(ncclRecv(in, n, ncclInt32, before, comm, stream));
    MUST(ncclGroupEnd());
    MUST(ncclAllReduce(in, out, n, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    int first, last;
    MUST(cudaMemcpy(&first, out, sizeof first, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(&last, out + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    EXPECT(first, sum_of_ranks());
    EXPECT(last, sum_of_ranks());
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
