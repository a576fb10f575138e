// A function on a stream sends a number by MPI, and the host has called MPI_Finalize
// before.
//
// expect: NCCL CHECK: setup: MPI_Send comes after MPI_Finalize
// expect: rank 1 on @host: MPI_Send at @send
// expect: MPI_Finalize at @end
#include "../check.h"

#include <unistd.h>

static void report_number(void *number) {
    usleep(200000);
    MPI_Send(number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD); // @send
}

int main(void) {
    start_with_threads();
    static int number = 7;
    if (rank == 1)
        MUST(cudaLaunchHostFunc(stream, report_number, &number));
    if (rank == 0)
        MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MPI_Finalize(); // @end
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm));
    return 0;
}
