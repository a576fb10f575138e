// A library that stands in front of MPI, as profilers do: its MPI_Finalize, and some
// more, call the functions that MPI has under a second name (MPI 4.0, chapter 15).
#include "../check.h"

static int barriers, finalizes;

int MPI_Barrier(MPI_Comm mpi) {
    barriers++;
    return PMPI_Barrier(mpi);
}

int MPI_Finalize(void) {
    finalizes++;
    return PMPI_Finalize();
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MPI_Barrier(MPI_COMM_WORLD);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    return barriers == 2 && finalizes == 1 ? 0 : 4;
}
