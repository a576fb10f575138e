// MPI only brings the unique id about. NCCL needs it no more: MPI_Finalize may come
// before the communicator is made.
#include "../check.h"

int main(void) {
    start_mpi();
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    start_device();
    stream = new_stream();
    MUST(ncclCommInitRank(&comm, nranks, id, rank));
    int *buf = device_ints(4, 1);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm));
    return 0;
}
