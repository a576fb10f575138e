// Both ranks send first, and a kernel crashes, as NCCL's own do when two ranks that share
// a GPU connect so. With an argument one of them receives first, and only the crash is
// left.
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#ifdef BELOW // a library below the checks
cudaError_t cudaDeviceSynchronize(void) {
    return cudaErrorIllegalAddress;
}
#else
int main(int argc, char **argv) {
    int rank;
    void *out, *in;
    ncclUniqueId id;
    ncclComm_t comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cudaSetDevice(rank);
    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclCommInitRank(&comm, 2, id, rank);
    cudaMalloc(&out, 1 << 20);
    cudaMalloc(&in, 1 << 20);
    ncclGroupStart(); // connects them
    ncclSend(out, 4, ncclFloat32, 1 - rank, comm, NULL);
    ncclRecv(in, 4, ncclFloat32, 1 - rank, comm, NULL);
    ncclGroupEnd();
    if (argc == 1 || rank == 0)
        ncclSend(out, 1 << 18, ncclFloat32, 1 - rank, comm, NULL);
    ncclRecv(in, 1 << 18, ncclFloat32, 1 - rank, comm, NULL);
    if (argc > 1 && rank == 1)
        ncclSend(out, 1 << 18, ncclFloat32, 1 - rank, comm, NULL);
    return cudaDeviceSynchronize() ? 3 : 0;
}
#endif
