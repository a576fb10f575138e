// One rank aborts the communicator, the others destroy it: they do not wait for that one.
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    MUST(cudaStreamDestroy(stream));
    if (rank == 1) {
        MUST(ncclCommAbort(comm));
    } else {
        MUST(ncclCommDestroy(comm));
    }
    MPI_Finalize();
    return 0;
}
