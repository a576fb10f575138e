// Rank 0 computes for longer than any deadline, and meanwhile the others wait for it: one
// in a receive, the rest in the collective that the receiving rank joins later.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int token = 42;
    if (rank == 0) {
        sleep(6);
        MPI_Send(&token, 1, MPI_INT, nranks - 1, 0, MPI_COMM_WORLD);
    } else if (rank == nranks - 1) {
        token = 0;
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(token, 42);
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
