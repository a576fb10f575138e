/*
 * Reduce-scatter, then all-gather: an all-reduce in two halves.
 *
 *     mpirun -np 4 ./reduce_scatter_allgather [-n COUNT]
 */
#include "lesson.h"

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    const size_t count = lesson_count(argc, argv, "elements of the result per rank", 1);
    const size_t total = count * (size_t)nranks;
    const size_t bytes = total * sizeof(int64_t), part_bytes = count * sizeof(int64_t);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // The unique id is how the ranks find one another. One rank makes it, MPI carries it.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));

    // Returns when all ranks have called it with the same id.
    ncclComm_t comm;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));

    // A non-blocking stream, as real programs use: nothing but us orders its work.
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // If the GPU has less free memory, the program ends here with a message.
    lesson_need_memory(2 * bytes + part_bytes);

    // Rank 0 brings 1, 2, 3, …; rank 1 brings 2, 3, 4, …: no two sums are alike.
    int64_t *host = lesson_malloc(bytes);
    for (size_t i = 0; i < total; i++)
        host[i] = rank + 1 + (int64_t)i;

    // On the GPU: what this rank brings, its part of the sum, and all parts.
    int64_t *sendbuf, *chunk, *recvbuf;
    CHECK_CUDA(cudaMalloc((void **)&sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&chunk, part_bytes));
    CHECK_CUDA(cudaMalloc((void **)&recvbuf, bytes));
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, bytes, cudaMemcpyHostToDevice, stream));
    lesson_table("Before reduce-scatter:", host, total, ncclInt64);

    // Here count is what one rank receives: it sends nranks times as much.
    CHECK_NCCL(
        ncclReduceScatter(sendbuf, chunk, count, ncclInt64, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host, chunk, part_bytes, cudaMemcpyDeviceToHost));
    lesson_table("After reduce-scatter:", host, count, ncclInt64);

    // Here count is what one rank sends: it receives nranks times as much, in rank order.
    CHECK_NCCL(ncclAllGather(chunk, recvbuf, count, ncclInt64, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
    lesson_table("After all-gather:", host, total, ncclInt64);

    // Element i is the sum of i + 1, i + 2, …, i + nranks.
    for (size_t i = 0; i < total; i++)
        lesson_expect(i, (double)host[i], nranks * (i + (nranks + 1) / 2.0));
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_CUDA(cudaFree(recvbuf));
    CHECK_CUDA(cudaFree(chunk));
    CHECK_CUDA(cudaFree(sendbuf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
