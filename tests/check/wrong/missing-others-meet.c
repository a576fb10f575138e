// The last rank leaves the collective out. The others ask whether it is done, and tell
// one another: so each of them makes progress for ever, and so does the real program.
// rank: 2
// alone: hangs
// ranks: 3 4
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum),
//     operation 2 on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits for ncclAllReduce(count 4, ncclInt32, ncclSum) at
//     @allreduce, operation 2 on communicator 1; rank @last has not begun this operation
// expect: rank @last on @host: waits in ncclCommDestroy at @finish, after 1 operation
//     on the communicator
// timeout: 1
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    int last = rank == nranks - 1, done = 0, all_done = 0;
    MPI_Comm others;
    MPI_Comm_split(MPI_COMM_WORLD, last, rank, &others);
    use_comm(comm); // the first call would wait on the host
#ifndef FIXED
    if (!last)
#endif
    {
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    }
    while (!all_done) {
        done = cudaStreamQuery(stream) == cudaSuccess;
        MPI_Allreduce(&done, &all_done, 1, MPI_INT, MPI_MIN, others);
    }
    MPI_Comm_free(&others);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
