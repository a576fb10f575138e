// Two communicators are destroyed in different orders, but in a group: its calls happen
// together.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    use_comm(comm);
    use_comm(other);
    MUST(cudaStreamDestroy(stream));
    MUST(ncclGroupStart());
    MUST(ncclCommDestroy(rank == 1 ? other : comm));
    MUST(ncclCommDestroy(rank == 1 ? comm : other));
    MUST(ncclGroupEnd());
    MPI_Finalize();
    return 0;
}
