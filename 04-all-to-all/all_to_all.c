/*
 * All-to-all: every rank has something different for every other rank.
 *
 *     mpirun -np 4 ./all_to_all [-n COUNT]
 */
#include "lesson.h"

/* An element that says where it comes from: the upper half is the sender's rank, the
 * lower half the place in the sender's buffer. Tables show them as A0, A1, B0, … */
static uint64_t letter(int rank, size_t index) {
    return ((uint64_t)rank << 32) | (uint32_t)index;
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    const size_t count = lesson_count(argc, argv, "elements per pair of ranks", 1);
    const size_t total = count * (size_t)nranks;
    const size_t bytes = total * sizeof(uint64_t);

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

    // Rank 0 holds A0, A1, A2, …; rank 1 holds B0, B1, B2, …: block j is for rank j.
    uint64_t *host = lesson_malloc(bytes);
    for (size_t i = 0; i < total; i++)
        host[i] = letter(rank, i);

    // On the GPU: two buffers, because no block may be overwritten before it is sent.
    uint64_t *sendbuf, *recvbuf;
    CHECK_CUDA(cudaMalloc((void **)&sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&recvbuf, bytes));
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, bytes, cudaMemcpyHostToDevice, stream));
    lesson_table("Before all-to-all:", host, total, ncclUint64);

    // The group makes all sends and receives one operation. Without it NCCL refuses a
    // send to oneself. Those to others would wait, and no rank would get to its receive.
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < nranks; peer++) {
        const size_t block = (size_t)peer * count;
        CHECK_NCCL(ncclSend(sendbuf + block, count, ncclUint64, peer, comm, stream));
        CHECK_NCCL(ncclRecv(recvbuf + block, count, ncclUint64, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());

    // The group only queued the work: without this wait, the copy below would race it.
    CHECK_CUDA(cudaStreamSynchronize(stream));

    // The table has been transposed: what was column r is now row r.
    CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
    lesson_table("After all-to-all:", host, total, ncclUint64);
    for (size_t i = 0; i < total; i++)
        lesson_expect(i, (double)host[i],
                      (double)letter((int)(i / count), rank * count + i % count));
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
