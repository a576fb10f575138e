// Ordinary memory of the host: it is copied to the device while MPI_Irecv still fills it.
// The copy takes what is there, which is often nothing yet.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: cudaMemcpyAsync reads a buffer that MPI still has
// expect: cudaMemcpyAsync at @copy reads what
// expect: MPI_Irecv at @receive writes until its request is completed
#include "../check.h"

enum { COUNT = 1000 };

int main(void) {
    start();
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    int *mine = malloc(COUNT * sizeof *mine), *theirs = calloc(COUNT, sizeof *theirs),
        *buf = device_ints(COUNT, 0);
    MPI_Request arrives;
    for (int i = 0; i < COUNT; i++)
        mine[i] = rank;
    // @receive
    MPI_Irecv(theirs, COUNT, MPI_INT, from, 0, MPI_COMM_WORLD, &arrives);
    MPI_Send(mine, COUNT, MPI_INT, to, 0, MPI_COMM_WORLD);
#ifdef FIXED
    MPI_Wait(&arrives, MPI_STATUS_IGNORE);
#endif
    // @copy
    MUST(cudaMemcpyAsync(buf, theirs, COUNT * sizeof *buf, cudaMemcpyDefault, stream));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
#ifndef FIXED
    MPI_Wait(&arrives, MPI_STATUS_IGNORE);
#endif
    EXPECT_INTS(buf, COUNT, sum_of_ranks());
    free(mine);
    free(theirs);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
