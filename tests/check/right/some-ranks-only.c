// A communicator of all ranks but rank 0, which has nothing to do with it and ends early.
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank, &part);
    if (rank > 0) {
        usleep(300000);
        comm = new_comm(part);
        stream = new_stream();
        use_comm(comm);
        MUST(cudaStreamDestroy(stream));
        MUST(ncclCommDestroy(comm));
        MPI_Comm_free(&part);
    }
    MPI_Finalize();
    return 0;
}
