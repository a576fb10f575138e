// Every collective in place: one buffer for both sides, or each rank's own part of it.
#include "../check.h"

int main(void) {
    start();
    int n = 5;
    int *buf = device_ints(n, rank);
    MUST(ncclAllReduce(buf, buf, n, ncclInt32, ncclSum, comm, stream));
    MUST(ncclReduce(buf, buf, n, ncclInt32, ncclMin, 0, comm, stream));
    MUST(ncclBroadcast(buf, buf, n, ncclInt32, 0, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, n, sum_of_ranks());

    int *all = device_ints(n * nranks, rank);
    int *mine = all + n * rank;
    MUST(ncclReduceScatter(all, mine, n, ncclInt32, ncclSum, comm, stream));
    MUST(ncclAllGather(mine, all, n, ncclInt32, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(all, n * nranks, sum_of_ranks());
    MUST(cudaFree(buf));
    MUST(cudaFree(all));
    finish();
    return 0;
}
