/*
 * Broadcast: rank 0 holds the answer, and every rank gets it.
 *
 *     mpirun -np 4 ./broadcast [-n COUNT]
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
    const size_t bytes = count * sizeof(int);

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
    lesson_need_memory(bytes);

    // On the host: only the root has the data.
    int *host = lesson_malloc(bytes);
    for (size_t i = 0; i < count; i++)
        host[i] = rank == 0 ? 42 : 0;

    // On the GPU: the host knows the address, but must not read or write there.
    int *buf;
    CHECK_CUDA(cudaMalloc((void **)&buf, bytes));
    CHECK_CUDA(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream));
    lesson_table("Before broadcast:", host, count, ncclInt32);

    // Every rank makes the same call. The root sends from its buffer, the others receive
    // into theirs; the same pointer twice means in place.
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, 0, comm, stream));

    // The call only queued the work: without this wait, the copy below would race it.
    CHECK_CUDA(cudaStreamSynchronize(stream));

    CHECK_CUDA(cudaMemcpy(host, buf, bytes, cudaMemcpyDeviceToHost));
    lesson_table("After broadcast:", host, count, ncclInt32);
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, host[i], 42);
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_CUDA(cudaFree(buf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
