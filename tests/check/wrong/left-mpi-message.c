// Every rank tells rank 0 that it is done, and rank 0 does not listen to rank 1. The
// message is small: MPI_Send does not wait for its receive.
// expect: NCCL CHECK: left behind: the program ends and has not received a message of MPI
// expect: rank 0: from rank 1, tag 5
// exit: 0
#include "../check.h"

int main(void) {
    start();
    int word = rank, first = 2;
#ifdef FIXED
    first = 1;
#endif
    if (rank > 0)
        MPI_Send(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    for (int r = first; r < nranks && rank == 0; r++)
        MPI_Recv(&word, 1, MPI_INT, r, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    use_comm(comm);
    finish();
    return 0;
}
