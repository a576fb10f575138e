// As many broadcasts as ranks in one group, each with another root: an all-gather of
// parts of unequal size.
#include "../check.h"

int main(void) {
    start();
    int total = nranks * (nranks + 1) / 2;
    int *all = device_ints(total, rank);
    MUST(ncclGroupStart());
    for (int root = 0, offset = 0; root < nranks; offset += ++root) {
        int *part = all + offset;
        MUST(ncclBroadcast(part, part, root + 1, ncclInt32, root, comm, stream));
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    for (int root = 0, offset = 0; root < nranks; offset += ++root) {
        EXPECT_INTS(all + offset, root + 1, root);
    }
    MUST(cudaFree(all));
    finish();
    return 0;
}
