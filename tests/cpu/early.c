/*
 * CUDA before MPI: many programs take their device from the launcher's environment, set
 * it and allocate on it, and start MPI only then.
 */
#include "ints.h"

int main(int argc, char **argv) {
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    int mine = local ? atoi(local) : 0, current = -1, count = 0;
    CUDA(cudaSetDevice(mine));
    int *a = new_ints(100);
    set_ints(a, 100, mine);
    start(&argc, &argv);
    CUDA(cudaGetDevice(&current));
    CUDA(cudaGetDeviceCount(&count));
    expect(current == mine, "device %d, was %d before MPI_Init", current, mine);
    expect(count >= tap_ranks, "%d devices, %d ranks", count, tap_ranks);
    expect_ints(a, 100, mine, "memory from before MPI_Init");
    point("the device and its memory outlast MPI_Init");

    ncclUniqueId id;
    ncclComm_t comm = NULL;
    if (tap_rank == 0) {
        NCCL(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    NCCL(ncclCommInitRank(&comm, tap_ranks, id, tap_rank));
    NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, comm, 0));
    expect_ints(a, 100, tap_ranks * (tap_ranks - 1) / 2, "all-reduce");
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(a));
    point("a communicator on the device set before MPI_Init");
    return finish();
}
