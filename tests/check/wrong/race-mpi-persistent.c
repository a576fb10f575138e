// The host writes the next step's numbers where a persistent send, between MPI_Start and
// MPI_Wait, still has the last ones.
//
// expect: NCCL CHECK: race: what MPI_Start sends was changed before its request was
//     completed
// expect: rank 1 on @host: MPI_Start at @start
#include "../check.h"

enum { N = 1 << 14 };

int main(void) {
    start();
    int *host = calloc(N, sizeof *host);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Recv_init(host, N, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    else if (rank == 1)
        MPI_Send_init(host, N, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    for (int step = 0; step < 3 && rank < 2; step++) {
        MPI_Start(&request); // @start
#ifdef FIXED
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
        for (int i = 0; i < N && rank == 1; i++)
            host[i] = step + i;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank < 2)
        MPI_Request_free(&request);
    free(host);
    finish();
    return 0;
}
