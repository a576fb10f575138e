// Even ranks work in place, odd ones do not. The ranks' buffers are their own business.
#include "../check.h"

int main(void) {
    start();
    int n = 5;
    int even = rank % 2 == 0;
    int *from = device_ints(n, rank);
    int *to = even ? from : device_ints(n, -1);
    MUST(ncclAllReduce(from, to, n, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(to, n, sum_of_ranks());

    int *all = device_ints(n * nranks, -1);
    int *mine = even ? all + n * rank : from;
    MUST(cudaMemsetAsync(mine, 0, n * sizeof(int), stream));
    MUST(ncclAllGather(mine, all, n, ncclInt32, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(all, n * nranks, 0);
    MUST(cudaFree(from));
    if (!even) {
        MUST(cudaFree(to));
    }
    MUST(cudaFree(all));
    finish();
    return 0;
}
