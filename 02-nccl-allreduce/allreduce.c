/*
 * All-reduce: every rank brings a buffer, and every rank gets the sum of them all.
 *
 *     mpirun -np 4 ./allreduce [-n COUNT]
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
    const size_t count = lesson_count(argc, argv, "elements per rank", 4);
    const size_t bytes = count * sizeof(float);

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
    lesson_need_memory(2 * bytes);

    // On the host: every rank brings ones, so the sum counts the ranks.
    float *host = lesson_malloc(bytes);
    for (size_t i = 0; i < count; i++)
        host[i] = 1;

    // On the GPU: one buffer to send from, one to receive into.
    float *sendbuf, *recvbuf;
    CHECK_CUDA(cudaMalloc((void **)&sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&recvbuf, bytes));
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, bytes, cudaMemcpyHostToDevice, stream));
    lesson_table("Before all-reduce:", host, count, ncclFloat32);

    // No root: the result is the same everywhere. sendbuf stays as it is.
    CHECK_NCCL(
        ncclAllReduce(sendbuf, recvbuf, count, ncclFloat32, ncclSum, comm, stream));

    // The call only queued the work: without this wait, the copy below would race it.
    CHECK_CUDA(cudaStreamSynchronize(stream));

    CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
    lesson_table("After all-reduce:", host, count, ncclFloat32);
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, host[i], nranks);
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_CUDA(cudaFree(recvbuf));
    CHECK_CUDA(cudaFree(sendbuf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
