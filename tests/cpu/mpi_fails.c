/*
 * MPI fails below the library: this program has an MPI_Isend of its own for it, which
 * fails when it is told to. The job must end, and say so; not wait for ever.
 */
#include "ints.h"

static int fails;

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag,
               MPI_Comm comm, MPI_Request *request) {
    MPI_Request always;
    if (fails) {
        return MPI_ERR_OTHER;
    }
    PMPI_Send_init(buffer, count, type, to, tag, comm, &always);
    PMPI_Start(&always);
    *request = always;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    ncclComm_t comm = world_comm();
    int *a = new_ints(10);
    fails = tap_rank == 1;
    NCCL(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    point("went on");
    return finish();
}
