// The next step's numbers are put where MPI still sends the last one's from. Small
// messages are gone by then; of a large one the other rank gets a part of both.
// expect: NCCL CHECK: race: what MPI_Isend sends was changed before its request was
//     completed
// expect: rank 0 on @host: MPI_Isend at @send
#include "../check.h"

enum { N = 1 << 16, BYTES = N * sizeof(int) };

int main(void) {
    start();
    int *host = calloc(N, sizeof *host);
    MPI_Request request = MPI_REQUEST_NULL;
    for (int step = 0; step < 3; step++) {
        if (rank == 0) {
#ifdef FIXED
            MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
            for (int i = 0; i < N; i++)
                host[i] = step;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Isend(host, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request); // @send
        } else if (rank == 1) {
            MPI_Recv(host, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef FIXED
            EXPECT(host[N - 1], step);
#endif
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(host);
    finish();
    return 0;
}
