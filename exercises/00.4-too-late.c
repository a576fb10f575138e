//: kind repair
//: title Invalid usage
//: trains the order of the calls in a program's life
//: setup program
//: ranks 2 4 | 1 3 7 8
//: calls ncclAllReduce
//: starter bound to the same GPU
//: wrong not-destroyed s/    CHECK_NCCL.ncclCommDestroy.comm..;\n//: NCCL CHECK: left behind
//: learned NCCL takes the current GPU of the thread that calls it, so cudaSetDevice comes before ncclCommInitRank.
//: why The GPU is chosen before anything is made on it, and that includes the communicator.
//: hint The report tells what the two ranks have in common. When is that decided?
//: hint Which GPU does ncclCommInitRank take? Which line of the program says it?
//: hint Move cudaSetDevice up, before ncclCommInitRank.
//: file

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
    //: starter
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    //: solution
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong own-number: bound to the same GPU
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong every-other: On 4 ranks … bound to the same GPU
    CHECK_CUDA(cudaSetDevice(rank % 2));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: wrong one-rank: bound to the same GPU
    if (rank == 0)
        CHECK_CUDA(cudaSetDevice(rank % ndevices));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    //: end
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
//: check
static bool told;

void result(int sum) {
    check_case("the sum of all ranks' numbers");
    told = true;
    int expected = check_nranks * (check_nranks + 1) / 2;
    check_that(sum == expected, "the sum is %d, expected %d", sum, expected);
}

void check(void) {
    check_that(told, "result() was not called");
}
