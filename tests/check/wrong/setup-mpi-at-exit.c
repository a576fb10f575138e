// What is printed at the end is collected at the exit of the process, where MPI has
// ended.
//
// expect: NCCL CHECK: setup: MPI_Reduce comes after MPI_Finalize
// expect: rank 0 on @host: MPI_Reduce at @reduce
// expect: MPI_Finalize at check.h
#include "../check.h"

static int steps;

static void report(void) {
    int most = 0, ended;
    MPI_Finalized(&ended);
#ifdef FIXED
    if (ended)
        return;
#endif
    if (rank > 0) // that only one of them says so
        return;
    // @reduce
    MPI_Reduce(&steps, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_SELF);
    printf("%d steps\n", most);
}

int main(void) {
    start();
    atexit(report);
    for (; steps < 3; steps++)
        use_comm(comm);
    finish();
    return 0;
}
