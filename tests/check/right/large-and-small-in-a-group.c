// A large broadcast and a small reduction with another root in one group: the small one
// is done first, and the large one goes on.
#include "../check.h"

int main(void) {
    start();
    enum { LARGE = 50000, SMALL = 11 };
    int *large = device_ints(LARGE, rank), *small = device_ints(SMALL, rank);
    for (int again = 0; again < 20; again++) {
        int root = again % nranks, other = (again + 1) % nranks;
        MUST(ncclGroupStart());
        MUST(ncclBroadcast(large, large, LARGE, ncclInt32, root, comm, stream));
        MUST(ncclReduce(small, small, SMALL, ncclInt32, ncclMax, other, comm, stream));
        MUST(ncclGroupEnd());
        MUST(ncclAllReduce(small, small, SMALL, ncclInt32, ncclMin, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(large, LARGE, 0);
    EXPECT_INTS(small, SMALL, 0);
    MUST(cudaFree(small));
    MUST(cudaFree(large));
    finish();
    return 0;
}
