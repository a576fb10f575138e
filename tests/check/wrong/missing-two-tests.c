// Rank 0 asks two requests of MPI in turn before it comes to the all-reduce, which the
// others are in: their messages come after it. At first it works between its questions,
// and does not wait; on a busy machine that cannot be told for sure.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce
// expect: rank 0 on @host: waits in MPI_Test at
// expect: rank 1 on @host: waits in ncclAllReduce at @allreduce
// timeout: 1
#include "../check.h"

int main(void) {
    MPI_Request a, b;
    int first = rank, second = rank, got_a = 0, got_b = 0;
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    if (rank == 1) {
        MPI_Send(&first, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&second, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
#endif
    if (rank == 0) {
        MPI_Irecv(&first, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &a);
        MPI_Irecv(&second, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &b);
        for (double end = MPI_Wtime() + 3; !got_a && MPI_Wtime() < end;) {
            for (volatile int i = 0; i < 5000000; i = i + 1) {
            }
            MPI_Test(&a, &got_a, MPI_STATUS_IGNORE);
        }
        while (!got_a || !got_b) {
            if (!got_a)
                MPI_Test(&a, &got_a, MPI_STATUS_IGNORE);
            if (!got_b)
                MPI_Test(&b, &got_b, MPI_STATUS_IGNORE);
        }
    }
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
    MUST(cudaStreamSynchronize(stream));
#ifndef FIXED
    if (rank == 1) {
        MPI_Send(&first, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&second, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
