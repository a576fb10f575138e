/*
 * Every rank takes device 0. NCCL refuses that with ncclInvalidUsage, and so does the CPU
 * build where its checks are off (NCCL_CPU_CHECK=off); where they are on, it ends the
 * job.
 */
#include "ints.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    if (tap_rank == 0) {
        NCCL(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    CUDA(cudaSetDevice(0));
    NCCL_IS(ncclInvalidUsage, ncclCommInitRank(&comm, tap_ranks, id, tap_rank));
    const char *text = ncclGetLastError(NULL);
    expect(text != NULL && strlen(text) > 3, "no text");
    point("all ranks on one device");

    comm = world_comm();
    int *a = new_ints(10);
    set_ints(a, 10, 1);
    NCCL(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    expect_ints(a, 10, tap_ranks, "all-reduce");
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(a));
    point("each rank on a device of its own, after that");
    return finish();
}
