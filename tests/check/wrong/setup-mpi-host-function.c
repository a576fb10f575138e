// A function on a stream tells the other rank by MPI that the sum is there. CUDA runs it
// in a thread of its own, and MPI was started for one thread.
// expect: NCCL CHECK: setup: a function of cudaLaunchHostFunc calls MPI_Send, and MPI was
//     started with MPI_THREAD_SINGLE
// expect: rank 0 on @host: MPI_Send at @send
// expect: the function: queued at @queued
// exit: 0
#include "../check.h"

static void tell(void *number) {
    MPI_Send(number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); // @send
}

int main(void) {
#ifdef FIXED
    start_with_threads();
#else
    start();
#endif
    int number = rank, *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    if (rank == 0)
        MUST(cudaLaunchHostFunc(stream, tell, &number)); // @queued
    MUST(cudaStreamSynchronize(stream));
    if (rank == 1)
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
