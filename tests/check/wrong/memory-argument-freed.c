// A function on the stream is given a note of its own, which is freed before it has
// begun.
//
// expect: NCCL CHECK: memory: the argument of a function on a stream is given back before
//     it begins
//
// expect: rank 0 on @host: cudaLaunchHostFunc at @queue
// expect: then comes free at @free, and the function on the stream has not begun
#include "../check.h"

static void count(void *calls) {
    ++*(int *)calls;
}

int main(void) {
    start();
    int *buf = device_ints(4, 1), *calls = calloc(1, sizeof *calls);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MUST(cudaLaunchHostFunc(stream, count, calls)); // @queue
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    free(calls); // @free
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
