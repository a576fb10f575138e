// Rank 0 looks at a variable, without a pause, that a function sets behind a collective.
// The others call the collective when they have heard from rank 0, which would tell them
// then.
//
// timeout: 1
// expect: NCCL CHECK: missing: ...
// expect: rank 0 on @host: sleeps behind ncclAllReduce at @call until another
// expect: rank 1 on @host: waits in MPI_Recv at ...
#include "../check.h"

static volatile int reached;

static void sets(void *unused) {
    (void)unused;
    reached = 1;
}

static void tell(void) {
    for (int r = 1; r < nranks && rank == 0; r++)
        MPI_Send(NULL, 0, MPI_INT, r, 0, MPI_COMM_WORLD);
}

int main(void) {
    start();
    int *buf = device_ints(10, 1);
#ifdef FIXED
    tell();
#endif
    if (rank > 0)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MUST(ncclAllReduce(buf, buf, 10, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaLaunchHostFunc(stream, sets, NULL));
    while (!reached)
        ;
#ifndef FIXED
    tell();
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
