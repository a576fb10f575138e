/*
 * Ring all-reduce by hand: chunks travel around a ring, first to be added up, then to be
 * shared.
 *
 *     mpirun -np 4 ./ring_allreduce [-n COUNT] [--no-tables] [-h]
 *
 * Beside it, report.h has the options, the numbers that are added, and the tables.
 */
#include "report.h"
#include <cublas_v2.h>

/* A part of a buffer: where it begins, and how many elements it has. */
struct chunk {
    size_t first, count;
};

/* Chunk number `index` of a buffer of `count` elements that is cut into `nranks` chunks.
 * Numbers go around the ring: chunk -1 is the last one. Chunks differ by one element at
 * most; with fewer elements than ranks, some are empty. */
static struct chunk chunk_of(size_t count, int nranks, int index) {
    const size_t n = (size_t)nranks, i = (size_t)((index + 2 * nranks) % nranks);
    const size_t first = count * i / n, next = count * (i + 1) / n;
    return (struct chunk){first, next - first};
}

/* What a rank works with. */
struct ring {
    int rank, nranks;
    ncclComm_t comm;
    cudaStream_t stream;
    cublasHandle_t blas; // adds on the GPU, in the same stream
    bool tables;         // whether to show `sum` after every step
};

/* Two rounds of the ring. `mine` is what this rank brings, and stays as it is; `sum`
 * begins as a copy of it. Returns the bytes that this rank has sent. */
static size_t ring_all_reduce(const struct ring *r, const float *mine, float *sum,
                              size_t count) {
    const int n = r->nranks, next = (r->rank + 1) % n, previous = (r->rank + n - 1) % n;
    const float one = 1;
    size_t sent = 0;
    for (int step = 0; step < 2 * (n - 1); step++) {
        // What came in with one step goes out with the next.
        const struct chunk out = chunk_of(count, n, r->rank - step);
        const struct chunk in = chunk_of(count, n, r->rank - step - 1);

        // Without the group every rank would wait in its send, and none would receive.
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(
            ncclSend(sum + out.first, out.count, ncclFloat32, next, r->comm, r->stream));
        CHECK_NCCL(ncclRecv(sum + in.first, in.count, ncclFloat32, previous, r->comm,
                            r->stream));
        CHECK_NCCL(ncclGroupEnd());
        sent += out.count * sizeof(float);

        // First round: sum = 1 * mine + sum. In the same stream, the addition begins when
        // the chunk has come, and the next step begins when the addition is done.
        if (step < n - 1)
            CHECK_CUBLAS(cublasSaxpy_64(r->blas, (int64_t)in.count, &one, mine + in.first,
                                        1, sum + in.first, 1));

        // To show the sum, the host must wait. Otherwise it queues all steps at once.
        if (r->tables) {
            CHECK_CUDA(cudaStreamSynchronize(r->stream));
            show_step(step, sum, count);
        }
    }
    return sent;
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct ring r;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &r.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &r.nranks));
    size_t count;
    report_options(argc, argv, &count, &r.tables);
    const size_t bytes = count * sizeof(float);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(r.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (r.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&r.comm, r.nranks, id, r.rank));

    // cuBLAS queues its additions in the stream that it is given: that of the sends.
    CHECK_CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&r.blas));
    CHECK_CUBLAS(cublasSetStream(r.blas, r.stream));

    // If the GPU has less free memory, the program ends here with a message.
    lesson_need_memory(2 * bytes);

    // This rank's numbers: on the host, and twice on the GPU.
    float *mine, *sum, *host = lesson_malloc(bytes);
    for (size_t i = 0; i < count; i++)
        host[i] = value(r.rank, i);
    CHECK_CUDA(cudaMalloc((void **)&mine, bytes));
    CHECK_CUDA(cudaMalloc((void **)&sum, bytes));
    CHECK_CUDA(cudaMemcpyAsync(mine, host, bytes, cudaMemcpyHostToDevice, r.stream));
    CHECK_CUDA(cudaMemcpyAsync(sum, host, bytes, cudaMemcpyHostToDevice, r.stream));
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    if (r.tables)
        lesson_table("Before ring all-reduce:", host, count, ncclFloat32);
    const size_t sent = ring_all_reduce(&r, mine, sum, count);
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    check(sum, host, count);

    // NCCL's own all-reduce of the same numbers must give the same sums. The ring's are
    // overwritten first, so that they can't be taken for NCCL's.
    CHECK_CUDA(cudaMemsetAsync(sum, 255, bytes, r.stream));
    CHECK_NCCL(ncclAllReduce(mine, sum, count, ncclFloat32, ncclSum, r.comm, r.stream));
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    check(sum, host, count);
    if (r.tables)
        lesson_table("After ncclAllReduce:", host, count, ncclFloat32);

    report_sent(sent, bytes);
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_CUDA(cudaFree(sum));
    CHECK_CUDA(cudaFree(mine));
    free(host);
    CHECK_CUBLAS(cublasDestroy(r.blas));
    CHECK_CUDA(cudaStreamDestroy(r.stream));
    CHECK_NCCL(ncclCommDestroy(r.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
