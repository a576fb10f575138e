// The program has an MPI_Wait of its own, which counts and calls MPI's second name for
// it, as every program may ("Profiling Interface" of the MPI standard). What it completes
// is complete.
#include "../check.h"

static int waited;

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    waited++;
    return PMPI_Wait(request, status);
}

int main(void) {
    start();
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    EXPECT(sum, sum_of_ranks());
    EXPECT(waited, 3);
    use_comm(comm);
    finish();
    return 0;
}
