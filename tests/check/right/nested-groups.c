// Groups inside groups, empty groups, and a group with one call: the work starts with the
// outermost ncclGroupEnd. Ranks may nest differently.
#include "../check.h"

int main(void) {
    start();
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    MUST(ncclGroupStart());
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, comm, stream));
    if (rank % 2 == 0) {
        MUST(ncclGroupStart());
        MUST(ncclGroupStart());
        MUST(ncclGroupEnd());
        MUST(ncclBroadcast(b, b, 4, ncclInt32, nranks - 1, comm, stream));
        MUST(ncclGroupEnd());
    } else {
        MUST(ncclBroadcast(b, b, 4, ncclInt32, nranks - 1, comm, stream));
    }
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(b, b, 4, ncclInt32, ncclMin, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(a, 4, sum_of_ranks());
    EXPECT_INTS(b, 4, nranks - 1);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    finish();
    return 0;
}
