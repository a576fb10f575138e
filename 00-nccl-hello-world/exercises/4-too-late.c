// 00.4 Invalid usage (repair)
// make exercise N=00.4

/*
 * "With one rank my program runs. With two it ends in ncclCommInitRank." Repair it.
 */
#include "lesson.h"

/* The program hands its result to this function, which checks it. */
void result(int sum);

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));

    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    ncclComm_t comm;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    int *buf, sum = rank + 1;
    CHECK_CUDA(cudaMalloc((void **)&buf, sizeof *buf));
    CHECK_CUDA(cudaMemcpyAsync(buf, &sum, sizeof sum, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(buf, buf, 1, ncclInt32, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(&sum, buf, sizeof sum, cudaMemcpyDeviceToHost));
    result(sum);

    CHECK_CUDA(cudaFree(buf));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
