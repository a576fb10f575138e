// Each rank takes the rank that has the numbers for another one: the roots of MPI_Bcast
// differ. MPI says nothing: all of them go on, with numbers of their own.
// expect: NCCL CHECK: mismatch: the ranks give different roots at collective call 2 on
//     MPI_COMM_WORLD
// expect: rank 0 on @host: MPI_Bcast(4 bytes of MPI_INT, root 0) at @bcast
// expect: rank 1 on @host: MPI_Bcast(4 bytes of MPI_INT, root 1) at @bcast
#include "../check.h"

int main(void) {
    start(); // whose MPI_Bcast is the first
#ifdef FIXED
    int root = 0;
#else
    int root = rank % 2;
#endif
    int learned = rank;
    MPI_Bcast(&learned, 1, MPI_INT, root, MPI_COMM_WORLD); // @bcast
    int *buf = device_ints(4, learned);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
