// Host messages between and during NCCL operations: the collective is queued, host
// messages go to the neighbours meanwhile, and MPI's own collectives stand in between.
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(1000, rank);
    int next = (rank + 1) % nranks;
    int before = (rank + nranks - 1) % nranks;
    for (int round = 0; round < 5; round++) {
        int received[2] = {-1, -1}, total;
        MPI_Request requests[4];
        MUST(ncclAllReduce(buf, buf, 1000, ncclInt32, ncclMax, comm, stream));
        MPI_Irecv(&received[0], 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&received[1], 1, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&rank, 1, MPI_INT, before, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        EXPECT(received[0], before);
        EXPECT(received[1], next);
        MPI_Barrier(MPI_COMM_WORLD);
        MUST(cudaStreamSynchronize(stream));
        MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(total, sum_of_ranks());
    }
    EXPECT_INTS(buf, 1000, nranks - 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
