// Only rank 0 calls MPI_Bcast, since "the others have it already". On one machine it does
// not wait for them, and what it sent comes with the next call that they make.
// expect: NCCL CHECK: mismatch: the ranks make different calls at collective call 1 on a
//     communicator of MPI
// expect: rank 0 on @host: MPI_Bcast(4 bytes of MPI_INT, root 0) at @bcast
// expect: rank 1 on @host: MPI_Allreduce(4 bytes of MPI_INT, MPI_SUM) at @sum
// expect: this communicator has 2 ranks
// ranks: 2 3
#include "../check.h"

int main(void) {
    start();
    MPI_Comm pair; // ranks 0 and 1, or 2 and 3, …
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    int steps = 3, sum = 0, one = 1;
#ifdef FIXED
    MPI_Bcast(&steps, 1, MPI_INT, 0, pair);
#else
    if (rank % 2 == 0)
        MPI_Bcast(&steps, 1, MPI_INT, 0, pair); // @bcast
#endif
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair); // @sum
    use_comm(comm);
    MPI_Comm_free(&pair);
    finish();
    return 0;
}
