// Receives that take what comes, probing, and a reduction that only the root waits for,
// while NCCL operations are queued.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    if (rank == 0) {
        int seen = 0;
        for (int i = 1; i < nranks; i++) {
            MPI_Status status;
            int value;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT(value, status.MPI_SOURCE);
            seen += value;
        }
        EXPECT(seen, sum_of_ranks());
    } else {
        usleep(20000 * rank);
        MPI_Send(&rank, 1, MPI_INT, 0, rank, MPI_COMM_WORLD);
    }
    int total = -1;
    MPI_Reduce(&rank, &total, 1, MPI_INT, MPI_SUM, nranks - 1, MPI_COMM_WORLD);
    if (rank == nranks - 1) {
        EXPECT(total, sum_of_ranks());
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
