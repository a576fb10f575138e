// The request of a small message is forgotten: it has arrived, and nobody asked. MPI's
// memory for it is never given back, and a larger message would still be on its way.
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: rank 0: 4 MPI requests (made at @overwritten)
// exit: 0
#include "../check.h"

int main(void) {
    start();
    int number = 7;
    for (int i = 0; i < 2 && rank == 0; i++) {
        MPI_Request request;
        MPI_Isend(&number, 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
#ifdef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    }
    for (int i = 0; i < 2 && rank == 1; i++)
        MPI_Recv(&number, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // Each request in the place of the one before, and only the last is waited for.
    int numbers[3];
    MPI_Request requests[3];
    for (int i = 0; i < 3 && rank == 0; i++) {
        numbers[i] = i;
        MPI_Request *place = requests;
#ifdef FIXED
        place += i;
#endif
        MPI_Isend(&numbers[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, place); // @overwritten
    }
    for (int i = 0; i < 3 && rank == 1; i++)
        MPI_Recv(&number, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef FIXED
    for (int i = 0; i < 3 && rank == 0; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        numbers[i] = -1; // what is sent no more may be changed
    }
#else
    if (rank == 0)
        MPI_Wait(requests, MPI_STATUS_IGNORE);
#endif
    use_comm(comm);
    finish();
    return 0;
}
