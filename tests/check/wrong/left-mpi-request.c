// The request of a small message is forgotten: it has arrived, and nobody asked. MPI's
// memory for it is never given back, and a larger message would still be on its way.
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: rank 0: 2 MPI requests (made at @send)
// exit: 0
#include "../check.h"

int main(void) {
    start();
    int number = 7;
    for (int i = 0; i < 2 && rank == 0; i++) {
        MPI_Request request;
        MPI_Isend(&number, 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request); // @send
#ifdef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    }
    for (int i = 0; i < 2 && rank == 1; i++)
        MPI_Recv(&number, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    use_comm(comm);
    finish();
    return 0;
}
