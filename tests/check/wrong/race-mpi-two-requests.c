// Rows come from the two neighbours, and the second one's place begins one number too
// early: two requests have it at the same time.
//
// expect: NCCL CHECK: race: two requests of MPI have the same memory
// expect: MPI_Irecv at @second writes what
// expect: MPI_Irecv at @first writes until its request is completed
#include "../check.h"

enum { COUNT = 100 };

int main(void) {
    start();
    int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    int mine[COUNT], rows[2 * COUNT], *buf = device_ints(2 * COUNT, 0);
#ifdef FIXED
    int *second = rows + COUNT;
#else
    int *second = rows + COUNT - 1;
#endif
    MPI_Request arrive[2];
    for (int i = 0; i < COUNT; i++)
        mine[i] = rows[i] = rows[COUNT + i] = rank;
    // @first
    MPI_Irecv(rows, COUNT, MPI_INT, previous, 0, MPI_COMM_WORLD, &arrive[0]);
    // @second
    MPI_Irecv(second, COUNT, MPI_INT, next, 1, MPI_COMM_WORLD, &arrive[1]);
    MPI_Send(mine, COUNT, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Send(mine, COUNT, MPI_INT, previous, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, arrive, MPI_STATUSES_IGNORE);
    MUST(cudaMemcpy(buf, rows, sizeof rows, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(ncclAllReduce(buf, buf, 2 * COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 2 * COUNT, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
