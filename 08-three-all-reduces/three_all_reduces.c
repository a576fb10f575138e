/*
 * Three all-reduces: the same sum by one call, and by two pairs of calls.
 *
 *     mpirun -np 4 ./three_all_reduces [-n COUNT] [--time] [--max BYTES] [-h]
 */
#include "clock.h"

enum { ONE_CALL, REDUCE_BROADCAST, SCATTER_GATHER, WAYS };
enum { REPEAT = 20, APART = 128 }; // sums in a batch; elements between the ones they use

/* Queues one of the ways to let every rank have the sum of all ranks' sendbuf. */
static void queue_sum(int way, const float *sendbuf, float *recvbuf, size_t count,
                      int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const size_t part = count / (size_t)nranks;
    float *mine = recvbuf + (size_t)rank * part;
    switch (way) {
    case ONE_CALL:
        CHECK_NCCL(
            ncclAllReduce(sendbuf, recvbuf, count, ncclFloat, ncclSum, comm, stream));
        break;
    case REDUCE_BROADCAST:
        // The sum comes to rank 0, and from there to all.
        CHECK_NCCL(
            ncclReduce(sendbuf, recvbuf, count, ncclFloat, ncclSum, 0, comm, stream));
        CHECK_NCCL(ncclBroadcast(recvbuf, recvbuf, count, ncclFloat, 0, comm, stream));
        break;
    case SCATTER_GATHER:
        // Each rank gets its part of the sum, at its place, and then everybody's.
        CHECK_NCCL(
            ncclReduceScatter(sendbuf, mine, part, ncclFloat, ncclSum, comm, stream));
        CHECK_NCCL(ncclAllGather(mine, recvbuf, part, ncclFloat, comm, stream));
        break;
    }
}

/* Element i of what `rank` brings: ones from rank 0, tens from rank 1, … and ones again
 * from rank 5. Whole numbers, and so are their sums, far below 2^24: a float counts
 * exactly, in whatever order they are added up. */
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
    size_t each, max;
    bool timed = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements of a rank's part of the sum, without --time",
         .number = &each, .usual = 1, .least = 1},
        {"--time", NULL, "no tables: the times of all sizes from 16 B", .flag = &timed},
        {"--max", "BYTES", "the largest size; K, M and G may follow the number",
         .number = &max, .usual = 64 << 10, .least = 16},
        {0}};
    lesson_options(argc, argv, options);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // One buffer that is summed, by all ways and in all sizes, and one for the sums.
    const size_t n = (size_t)nranks, room = timed ? max / sizeof(float) : each * n;
    lesson_need_memory(2 * room * sizeof(float));
    float *host = lesson_malloc(room * sizeof(float)), ones = 0;
    float *sendbuf, *recvbuf; // on the GPU
    CHECK_CUDA(cudaMalloc((void **)&sendbuf, room * sizeof(float)));
    CHECK_CUDA(cudaMalloc((void **)&recvbuf, room * sizeof(float)));
    for (size_t i = 0; i < room; i++)
        host[i] = value(rank, i);
    for (int r = 0; r < nranks; r++)
        ones += value(r, 0);
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, room * sizeof(float),
                               cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (!timed)
        lesson_table("Before:", host, room, ncclFloat);
    else if (rank == 0)
        printf("%11s%27s%27s%27s\n%11s%15s %12s%15s %12s%15s %12s\n", "D", "all_reduce",
               "reduce, broadcast", "reduce_scatter, all_gather", "(B)", "sends (B)",
               "time (µs)", "sends (B)", "time (µs)", "sends (B)", "time (µs)");

    for (size_t size = timed ? 4 : room; size <= room; size *= 4) {
        // Every rank's part of the sum has whole elements.
        const size_t count = size / n * n, bytes = count * sizeof(float);
        if (count == 0)
            continue;

        // Each once, to be checked; it also lets NCCL make its connections.
        const char *titles[] = {
            "After ncclAllReduce:", "After ncclReduce, ncclBroadcast:",
            "After ncclReduceScatter, ncclAllGather:"};
        for (int way = 0; way < WAYS; way++) {
            CHECK_CUDA(cudaMemsetAsync(recvbuf, 0, bytes, stream));
            queue_sum(way, sendbuf, recvbuf, count, rank, nranks, comm, stream);
            CHECK_CUDA(cudaStreamSynchronize(stream));
            CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < count; i++)
                lesson_expect(i, (double)host[i], (double)(ones * value(0, i)));
            if (!timed)
                lesson_table(titles[way], host, count, ncclFloat);
        }

        // Then timed, twice, and the second time counts: a GPU that had nothing to do
        // while the host looked at the sums is slow at first. Each sum takes another part
        // of the buffers, as long as there is one, so that no cache helps.
        const size_t stride = (count + APART - 1) / APART * APART;
        const size_t places = room / stride > 0 ? room / stride : 1;
        double seconds[WAYS];
        for (int turn = 0; timed && turn < 2 * WAYS; turn++) {
            const int way = turn % WAYS;
            struct stopwatch watch = {0};
            while (!stopwatch_settled(&watch)) {
                stopwatch_start(&watch);
                for (size_t i = 0; i < REPEAT; i++) {
                    const size_t at = i % places * stride;
                    queue_sum(way, sendbuf + at, recvbuf + at, count, rank, nranks, comm,
                              stream);
                }
                CHECK_CUDA(cudaStreamSynchronize(stream));
                stopwatch_stop(&watch, REPEAT);
            }
            seconds[way] = watch.seconds;
        }

        // A rank of a ring sends (N-1)/N of the buffer in each half. In a chain to the
        // root, and back, a rank in the middle sends all of it twice; of two ranks, one
        // sends first, and then the other.
        const double ring = 2.0 * (double)(n - 1) / (double)n * (double)bytes;
        const double chain = (nranks > 2 ? 2.0 : nranks - 1.0) * (double)bytes;
        if (timed && rank == 0)
            printf("%11zu%15.0f %11.2f%15.0f %11.2f%15.0f %11.2f\n", bytes, ring,
                   seconds[ONE_CALL] * 1e6, chain, seconds[REDUCE_BROADCAST] * 1e6, ring,
                   seconds[SCATTER_GATHER] * 1e6);
        fflush(stdout);
    }

    // What it costs to make a communicator first, as the functions of the puzzle do.
    struct stopwatch watch = {0};
    while (timed && !stopwatch_settled(&watch)) {
        ncclComm_t own;
        stopwatch_start(&watch);
        CHECK_NCCL(ncclCommSplit(comm, 0, rank, &own, NULL));
        queue_sum(ONE_CALL, sendbuf, recvbuf, 1, rank, nranks, own, stream);
        CHECK_CUDA(cudaStreamSynchronize(stream));
        stopwatch_stop(&watch, 1);
        CHECK_NCCL(ncclCommDestroy(own));
    }
    if (timed && rank == 0)
        printf("ncclCommSplit and the first all_reduce, of 4 B: %.0f µs\n",
               watch.seconds * 1e6);
    const int exit_code = lesson_verdict("element");

    // In reverse order: nothing may go while something made later still uses it.
    CHECK_CUDA(cudaFree(recvbuf));
    CHECK_CUDA(cudaFree(sendbuf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
