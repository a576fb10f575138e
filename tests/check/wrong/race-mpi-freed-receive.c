// A receive is started once more behind the last message, its request is freed, and so is
// its buffer: MPI may still put a message there.
//
// expect: NCCL CHECK: race: cudaFreeHost frees a buffer that MPI still has
// expect: MPI_Start at @start writes until a message has come
// expect: nobody knows until when: MPI_Request_free at @free
#include "../check.h"

enum { COUNT = 100, MESSAGES = 3 };

int main(void) {
    start();
    int *host;
    MUST(cudaMallocHost((void **)&host, COUNT * sizeof *host));
    memset(host, 0, COUNT * sizeof *host);
    if (rank == 0) {
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(host, COUNT, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Request next;
        MPI_Recv_init(host, COUNT, MPI_INT, 0, 0, MPI_COMM_WORLD, &next);
        for (int i = 0; i <= MESSAGES; i++) {
            MPI_Start(&next); // @start
            if (i < MESSAGES)
                MPI_Wait(&next, MPI_STATUS_IGNORE);
        }
#ifdef FIXED
        MPI_Cancel(&next);
#endif
        MPI_Request_free(&next); // @free
    }
    MUST(cudaFreeHost(host));
    finish();
    return 0;
}
