// Communicators shrink, twice with the same ranks in a different order, and the parent
// serves on; then an all-reduce that one rank leaves out is dropped.
// ranks: 3 4
#include "../check.h"

static void use(ncclComm_t used, int n) {
    int *buf = device_ints(4, 1);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, used, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, n);
    MUST(cudaFree(buf));
}

int main(void) {
    start();
    int last = nranks - 1, lists[2][2] = {{last, 1}, {1, last}};
    ncclComm_t rest, again;
    use_comm(comm);
    if (rank != last && rank != 1) {
        MUST(ncclCommShrink(comm, lists[rank % 4 == 0], 2, &rest, NULL, 0));
        MUST(ncclCommShrink(comm, lists[rank % 4 != 0], 2, &again, NULL, 0));
        use(rest, nranks - 2);
        use(again, nranks - 2);
        MUST(ncclCommDestroy(again));
        MUST(ncclCommDestroy(rest));
    }
    use_comm(comm);
    if (rank != last) {
        int *buf = device_ints(4, 1);
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
        MUST(ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_ABORT));
        MUST(cudaStreamSynchronize(stream));
        use(rest, nranks - 1);
        MUST(ncclCommDestroy(rest));
        MUST(cudaFree(buf));
    }
    MUST(cudaStreamDestroy(stream));
    MPI_Barrier(MPI_COMM_WORLD); // whoever aborts early makes the others' calls fail
    MUST(ncclCommAbort(comm));
    MPI_Finalize();
    return 0;
}
