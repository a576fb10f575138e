// Rank 0 sends a rate and then a number of steps, the others take the steps first. MPI
// moves four bytes each time and says nothing; the numbers mean something else.
// expect: NCCL CHECK: mismatch: the ranks give different data types at collective call 2
//     on MPI_COMM_WORLD
// expect: rank 0 on @host: MPI_Bcast(4 bytes of MPI_FLOAT, root 0) at @rate
// expect: rank 1 on @host: MPI_Bcast(4 bytes of MPI_INT, root 0) at @steps
#include "../check.h"

#include <stdbool.h>

int main(void) {
    start(); // whose MPI_Bcast is the first
    float rate = rank == 0 ? 0.5F : 0;
    int steps = rank == 0 ? 3 : 0;
#ifdef FIXED
    bool rate_first = true;
#else
    bool rate_first = rank == 0;
#endif
    if (rate_first)
        MPI_Bcast(&rate, 1, MPI_FLOAT, 0, MPI_COMM_WORLD); // @rate
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);      // @steps
    if (!rate_first)
        MPI_Bcast(&rate, 1, MPI_FLOAT, 0, MPI_COMM_WORLD);
    use_comm(comm);
    finish();
    return 0;
}
