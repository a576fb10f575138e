// Rank 0 deals out blocks with MPI_Send, its own among them, and nobody is there to
// receive that one: MPI_Send may wait for the receive, and with so many bytes it does.
//
// rank: 0
// alone: hangs
// timeout: 1
// expect: NCCL CHECK: missing: every rank waits, and nothing has moved
// expect: rank 0 on @host: waits in MPI_Send at @send
// expect: rank 1 on @host: waits in MPI_Recv at @receive
// ranks: 2 3
#include "../check.h"

enum { COUNT = 100000 };

int main(void) {
    start();
    int *all = malloc((size_t)nranks * COUNT * sizeof *all),
        *mine = malloc(COUNT * sizeof *mine), *buf = device_ints(COUNT, 0), first = 0;
    for (int i = 0; i < nranks * COUNT; i++)
        all[i] = i / COUNT;
#ifdef FIXED
    first = 1;
    memcpy(mine, all, COUNT * sizeof *mine);
#endif
    for (int r = first; r < nranks && rank == 0; r++)
        MPI_Send(all + r * COUNT, COUNT, MPI_INT, r, 0, MPI_COMM_WORLD); // @send
    if (rank >= first)
        // @receive
        MPI_Recv(mine, COUNT, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MUST(cudaMemcpyAsync(buf, mine, COUNT * sizeof *buf, cudaMemcpyDefault, stream));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, COUNT, sum_of_ranks());
    free(all);
    free(mine);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
