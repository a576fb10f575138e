// Root and the others broadcast from different functions, in place and out of place, and
// with the old name of the call. It is one and the same collective.
#include "../check.h"

static void as_root(const int *from, int *to) {
    MUST(ncclBroadcast(from, to, 4, ncclInt32, 0, comm, stream));
}

static void as_another(int *to) {
    if (rank % 2 == 1) {
        MUST(ncclBcast(to, 4, ncclInt32, 0, comm, stream));
    } else {
        MUST(ncclBroadcast(NULL, to, 4, ncclInt32, 0, comm, stream));
    }
}

int main(void) {
    start();
    int *from = device_ints(4, 42);
    int *to = device_ints(4, rank);
    if (rank == 0) {
        as_root(from, to);
    } else {
        as_another(to);
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(to, 4, 42);
    MUST(cudaFree(from));
    MUST(cudaFree(to));
    finish();
    return 0;
}
