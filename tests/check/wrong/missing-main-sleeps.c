// Rank 1 leaves the collective out and is in MPI_Finalize. Rank 0 sleeps until a function
// on its stream has set a flag: it waits by means that nobody sees. The real program
// sleeps for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum),
//     operation 2 on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits for ncclAllReduce(count 4, ncclInt32, ncclSum) at
//     @allreduce, operation 2 on communicator 1; rank 1 has not begun this operation
// expect: rank 1 on @host: is in MPI_Finalize at @finalize, after 1 operation on the
//     communicator
// timeout: 1
#include "../check.h"

#include <stdatomic.h>
#include <unistd.h>

static atomic_int flag;

static void set_flag(void *unused) {
    (void)unused;
    flag = 1;
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    use_comm(comm); // the first call would wait on the host
#ifndef FIXED
    if (rank == 1) {
        MPI_Finalize(); // @finalize
        return 0;
    }
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaLaunchHostFunc(stream, set_flag, NULL));
    while (!flag) {
        usleep(1000);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
