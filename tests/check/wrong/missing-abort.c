// Rank 1 gives up without a word while the others wait in an all-reduce.
// rank: 1
// alone: exit code 3
// exit: 3
// expect: NCCL CHECK: note: rank 1 ends the job by MPI_Abort at @abort; ... had
//     waited for it for ... s in ncclAllReduce at @allreduce for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, operation 1 on
//     communicator 1; rank 1 has not begun this operation
// expect 2: by MPI_Abort at @abort; rank 0 had waited
// expect 3: by MPI_Abort at @abort; ranks 0, 2 had waited
// expect 4: by MPI_Abort at @abort; ranks 0, 2, 3 had waited
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifndef FIXED
    if (rank == 1) {
        sleep(4);
        MPI_Abort(MPI_COMM_WORLD, 3); // @abort
    }
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
