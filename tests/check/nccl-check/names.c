// Communicators with names (ncclConfig_t, commName), as PyTorch gives them: of two, the
// ranks use the second one with different counts. With an argument, rank 0 alone makes
// it.
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, nranks;
    void *buffer;
    ncclUniqueId id;
    ncclComm_t world, second;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    (void)argv;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    cudaSetDevice(rank);
    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    config.commName = "default_pg:0";
    ncclCommInitRankConfig(&world, nranks, id, rank, &config);
    config.commName = "mesh_dp:1";
    if (argc == 1 || rank == 0)
        ncclCommSplit(world, 0, rank, &second, &config);
    cudaMalloc(&buffer, 4096);
    ncclAllReduce(buffer, buffer, rank == nranks - 1 ? 5 : 4, ncclFloat32, ncclSum,
                  argc == 1 ? second : world, NULL);
    cudaDeviceSynchronize();
    MPI_Finalize();
}
