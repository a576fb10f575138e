/*
 * Ring all-reduce by hand: chunks go round a ring, to be added up, then to be shared.
 *
 *     mpirun -np 4 ./ring_allreduce [-n COUNT] [--no-tables] [-h]
 */
#include "lesson.h"
#include <cublas_v2.h>

/* Some elements of a buffer: the number of the first, and how many. */
struct chunk {
    size_t first, count;
};

/* Chunk number `index` of a buffer of `count` elements that is cut into `nranks`. They
 * are counted round the ring: before chunk 0 comes the last one, as chunk -1. Chunks
 * differ by one element at most; with fewer elements than ranks some are empty. */
static struct chunk chunk_of(size_t count, int nranks, int index) {
    const size_t n = (size_t)nranks, i = (size_t)((index + 2 * nranks) % nranks);
    const size_t first = count * i / n, next = count * (i + 1) / n;
    return (struct chunk){first, next - first};
}

/* Element i of what `rank` brings: ones from rank 0, tens from rank 1, … and ones again
 * from rank 5. Whole numbers, whose sum stays below 2^24 up to 800 ranks: so far a float
 * counts exactly, in whatever order the ring adds. */
static float value(int rank, size_t i) {
    const float place[] = {1, 10, 100, 1000, 10000};
    return place[rank % 5] * (float)(1 + i % 9);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    size_t count = 0;
    bool no_tables = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements per rank, at least 1", .number = &count,
         .usual = (size_t)nranks, .least = 1},
        {"--no-tables", NULL, "prints only the bytes that each rank sends",
         .flag = &no_tables},
        {0}};
    lesson_options(argc, argv, options);
    const size_t bytes = count * sizeof(float);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));

    // cuBLAS adds on the GPU. It queues its additions in the stream that it is given: the
    // one that the sends and receives are in.
    cudaStream_t stream;
    cublasHandle_t blas;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, stream));

    // If the GPU has less to spare, the run ends here with a message.
    lesson_need_memory(2 * bytes);

    // On the host: this rank's numbers.
    float *host = lesson_malloc(bytes);
    for (size_t i = 0; i < count; i++)
        host[i] = value(rank, i);

    // On the GPU: `mine` is what this rank brings, and stays as it is; in `sum` the sums
    // grow. In the beginning both are the same.
    float *mine, *sum;
    CHECK_CUDA(cudaMalloc((void **)&mine, bytes));
    CHECK_CUDA(cudaMalloc((void **)&sum, bytes));
    CHECK_CUDA(cudaMemcpyAsync(mine, host, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(sum, host, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (!no_tables)
        lesson_table("Before ring all-reduce:", host, count, ncclFloat32);

    // Round the ring twice. In the first round every rank adds its own to what came in;
    // after it each rank has one whole sum. The second round only passes the sums on.
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    const float one = 1;
    size_t sent = 0;
    for (int step = 0; step < 2 * (nranks - 1); step++) {
        // What goes out is what came in with the last step.
        const struct chunk out = chunk_of(count, nranks, rank - step);
        const struct chunk in = chunk_of(count, nranks, rank - step - 1);

        // Without the group each rank waits in its send, and none reaches its receive.
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclSend(sum + out.first, out.count, ncclFloat32, next, comm, stream));
        CHECK_NCCL(
            ncclRecv(sum + in.first, in.count, ncclFloat32, previous, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
        sent += out.count * sizeof(float);

        // sum = 1 * mine + sum. Being in the same stream it begins when the chunk has
        // come, and the next step begins when it has been added: the host need not wait.
        if (step < nranks - 1)
            CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)in.count, &one, mine + in.first, 1,
                                        sum + in.first, 1));

        // The host waits only because the table is to show what is there now. cudaMemcpy
        // does not wait for this stream by itself.
        if (!no_tables) {
            char title[64];
            snprintf(title, sizeof title, "After step %d of %d, %s:", step + 1,
                     2 * (nranks - 1), step < nranks - 1 ? "added up" : "passed on");
            CHECK_CUDA(cudaStreamSynchronize(stream));
            CHECK_CUDA(cudaMemcpy(host, sum, bytes, cudaMemcpyDeviceToHost));
            lesson_table(title, host, count, ncclFloat32);
        }
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host, sum, bytes, cudaMemcpyDeviceToHost));
    float factor = 0;
    for (int r = 0; r < nranks; r++)
        factor += value(r, 0);
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i], (double)(factor * value(0, i)));

    // NCCL's own all-reduce of the same numbers: the result must be the same. Nothing of
    // the ring's sums is left to be taken for it.
    CHECK_CUDA(cudaMemsetAsync(sum, 255, bytes, stream));
    CHECK_NCCL(ncclAllReduce(mine, sum, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host, sum, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i], (double)(factor * value(0, i)));
    if (!no_tables)
        lesson_table("After ncclAllReduce:", host, count, ncclFloat32);

    // The bytes that this rank has sent round the ring, beside the formula.
    char line[128];
    snprintf(line, sizeof line, "GPU %d sent %zu bytes; 2(N-1)/N x D = %.1f", rank, sent,
             2.0 * (nranks - 1) / nranks * (double)bytes);
    lesson_print_in_order(line);
    const int exit_code = lesson_verdict("element");

    // In reverse order: nothing may go while something made later still uses it.
    CHECK_CUDA(cudaFree(sum));
    CHECK_CUDA(cudaFree(mine));
    free(host);
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
