// A C++ object releases what it has after main: nothing is left behind.
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <cstdio>

struct Everything {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    void *buffer = nullptr;
    ~Everything() {
        cudaStreamSynchronize(stream); // only here
        cudaFree(buffer);
        cudaStreamDestroy(stream);
        ncclCommDestroy(comm);
        MPI_Finalize();
    }
};
static Everything all;

int main(int argc, char **argv) {
    int rank, nranks, devices;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    cudaGetDeviceCount(&devices);
    cudaSetDevice(rank % devices);
    ncclUniqueId id;
    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclCommInitRank(&all.comm, nranks, id, rank);
    cudaStreamCreate(&all.stream);
    cudaMalloc(&all.buffer, 64);
    cudaMemset(all.buffer, 0, 64);
    ncclAllReduce(all.buffer, all.buffer, 16, ncclInt32, ncclSum, all.comm, all.stream);
    if (rank == 0)
        std::puts("OK");
    return 0;
}
