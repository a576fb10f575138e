// Rank 0 looks again and again at a flag that a host function sets behind a collective.
// The others call it when they have heard from rank 0, which would tell them behind the
// flag.
//
// timeout: 1
// expect: NCCL CHECK: missing: ...
//
// expect: rank 0 on @host: sleeps behind ncclAllReduce at ... until another of its
//     threads wakes it
//
// expect: rank 1 on @host: waits in MPI_Recv
#include "../check.h"

static int reached;

static void sets(void *flag) {
    __atomic_store_n((int *)flag, 1, __ATOMIC_SEQ_CST);
}

static void tell(void) {
    for (int r = 1; r < nranks && rank == 0; r++)
        MPI_Send(NULL, 0, MPI_INT, r, 0, MPI_COMM_WORLD);
}

int main(void) {
    start();
    int *buf = device_ints(10, 1);
    if (rank > 0)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef FIXED
    tell();
#endif
    MUST(ncclAllReduce(buf, buf, 10, ncclInt32, ncclSum, comm, stream));
    MUST(cudaLaunchHostFunc(stream, sets, &reached));
    while (!__atomic_load_n(&reached, __ATOMIC_SEQ_CST))
        usleep(100);
#ifndef FIXED
    tell();
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
