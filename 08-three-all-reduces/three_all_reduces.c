/*
 * Three all-reduces: the same sum by one call, and by two pairs of calls.
 *
 *     mpirun -np 4 ./three_all_reduces [-n COUNT] [--time] [--max BYTES] [-h]
 *
 * report.h beside it prints the lines of --time.
 */
#include "clock.h"
#include "report.h"

enum { ONE_CALL, REDUCE_BROADCAST, SCATTER_GATHER, WAYS };

struct sums {
    int rank, nranks;
    ncclComm_t comm;
    cudaStream_t stream;
    size_t room;              // elements of each of the buffers
    float *sendbuf, *recvbuf; // on the GPU
    float *host;
};

/* Queues one of the ways to give every rank the sum of all ranks' sendbuf. */
static void queue_sum(const struct sums *s, int way, const float *sendbuf, float *recvbuf,
                      size_t count) {
    const size_t part = count / (size_t)s->nranks;
    float *mine = recvbuf + (size_t)s->rank * part;
    ncclComm_t comm = s->comm;
    cudaStream_t stream = s->stream;
    switch (way) {
    case ONE_CALL:
        CHECK_NCCL(
            ncclAllReduce(sendbuf, recvbuf, count, ncclFloat, ncclSum, comm, stream));
        break;
    case REDUCE_BROADCAST:
        // The sum goes to rank 0, and from there to all ranks.
        CHECK_NCCL(
            ncclReduce(sendbuf, recvbuf, count, ncclFloat, ncclSum, 0, comm, stream));
        CHECK_NCCL(ncclBroadcast(recvbuf, recvbuf, count, ncclFloat, 0, comm, stream));
        break;
    case SCATTER_GATHER:
        // Each rank gets one part of the sum, then the parts of all ranks.
        CHECK_NCCL(
            ncclReduceScatter(sendbuf, mine, part, ncclFloat, ncclSum, comm, stream));
        CHECK_NCCL(ncclAllGather(mine, recvbuf, part, ncclFloat, comm, stream));
        break;
    }
}

/* Element i of this rank's buffer: ones on rank 0, tens on rank 1, … and ones again on
 * rank 5. The sums stay far below 2^24, so floats hold them exactly, whatever the order
 * of the additions. */
static float value(int rank, size_t i) {
    const float place[] = {1, 10, 100, 1000, 10000};
    return place[rank % 5] * (float)(1 + i % 9);
}

/* Sums in each of the three ways, and checks every element. */
static void check_ways(const struct sums *s, size_t count, bool tables) {
    const char *titles[] = {"After ncclAllReduce:", "After ncclReduce, ncclBroadcast:",
                            "After ncclReduceScatter, ncclAllGather:"};
    const size_t bytes = count * sizeof(float);
    float first = 0; // element 0 of the sum
    for (int r = 0; r < s->nranks; r++)
        first += value(r, 0);
    for (int way = 0; way < WAYS; way++) {
        // Zeros, so that no way can pass with the result of the previous one.
        CHECK_CUDA(cudaMemsetAsync(s->recvbuf, 0, bytes, s->stream));
        queue_sum(s, way, s->sendbuf, s->recvbuf, count);
        CHECK_CUDA(cudaStreamSynchronize(s->stream));
        CHECK_CUDA(cudaMemcpy(s->host, s->recvbuf, bytes, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < count; i++)
            lesson_expect(i, (double)s->host[i], (double)(first * value(0, i)));
        if (tables)
            lesson_table(titles[way], s->host, count, ncclFloat);
    }
}

/* Seconds of one sum of `count` elements in each way: the medians of batches. */
static void time_ways(const struct sums *s, size_t count, double seconds[WAYS]) {
    enum { REPEAT = 20, ALIGN = 128 };
    // Each sum of a batch takes a different part of the buffers, as long as there is one,
    // so that no cache helps.
    const size_t stride = (count + ALIGN - 1) / ALIGN * ALIGN;
    const size_t places = s->room / stride > 0 ? s->room / stride : 1;
    // Twice, and the second time counts: a GPU that has been idle is slow at first. A
    // modelled one never is.
    for (int turn = lesson_modelled() ? WAYS : 0; turn < 2 * WAYS; turn++) {
        struct stopwatch watch = {0};
        while (!stopwatch_settled(&watch)) {
            stopwatch_start(&watch);
            for (size_t i = 0; i < REPEAT; i++) {
                const size_t at = i % places * stride;
                queue_sum(s, turn % WAYS, s->sendbuf + at, s->recvbuf + at, count);
            }
            CHECK_CUDA(cudaStreamSynchronize(s->stream));
            stopwatch_stop(&watch, REPEAT);
        }
        seconds[turn % WAYS] = watch.seconds;
    }
}

/* What a new communicator costs, with its first all-reduce. */
static void time_communicator(const struct sums *s) {
    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch)) {
        struct sums own = *s;
        stopwatch_start(&watch);
        CHECK_NCCL(ncclCommSplit(s->comm, 0, s->rank, &own.comm, NULL));
        queue_sum(&own, ONE_CALL, s->sendbuf, s->recvbuf, 1);
        CHECK_CUDA(cudaStreamSynchronize(s->stream));
        stopwatch_stop(&watch, 1);
        CHECK_NCCL(ncclCommDestroy(own.comm));
    }
    if (s->rank == 0)
        printf("ncclCommSplit and the first all_reduce, of 4 B: %.0f µs\n",
               watch.seconds * 1e6);
}

/* Times all sizes in all ways. */
static void time_sizes(const struct sums *s) {
    const size_t n = (size_t)s->nranks;
    report_head();
    for (size_t size = 4; size <= s->room; size *= 4) {
        const size_t count = size / n * n; // whole elements for every rank's part
        if (count == 0)
            continue;
        double seconds[WAYS];
        check_ways(s, count, false); // also lets NCCL make its connections
        time_ways(s, count, seconds);
        report_row(count, seconds);
    }
    time_communicator(s);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct sums s = {0};
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &s.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &s.nranks));
    size_t each, max;
    bool timed = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements of a rank's part of the sum, without --time",
         .number = &each, .usual = 1, .least = 1},
        {"--time", NULL, "no tables, but the times of all sizes from 16 B",
         .flag = &timed},
        {"--max", "BYTES", "the largest size, such as 64K, 16M or 1G", .number = &max,
         .usual = 64 << 10, .least = 16},
        {0}};
    lesson_options(argc, argv, options);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(s.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (s.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&s.comm, s.nranks, id, s.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));

    // One buffer with this rank's numbers, and one for the sums, for all sizes and ways.
    s.room = timed ? max / sizeof(float) : each * (size_t)s.nranks;
    const size_t bytes = s.room * sizeof(float);
    lesson_need_memory(2 * bytes);
    s.host = lesson_malloc(bytes);
    CHECK_CUDA(cudaMalloc((void **)&s.sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&s.recvbuf, bytes));
    for (size_t i = 0; i < s.room; i++)
        s.host[i] = value(s.rank, i);
    CHECK_CUDA(
        cudaMemcpyAsync(s.sendbuf, s.host, bytes, cudaMemcpyHostToDevice, s.stream));
    CHECK_CUDA(cudaStreamSynchronize(s.stream));

    if (timed) {
        time_sizes(&s);
    } else {
        lesson_table("Before:", s.host, s.room, ncclFloat);
        check_ways(&s, s.room, true);
    }
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_CUDA(cudaFree(s.recvbuf));
    CHECK_CUDA(cudaFree(s.sendbuf));
    free(s.host);
    CHECK_CUDA(cudaStreamDestroy(s.stream));
    CHECK_NCCL(ncclCommDestroy(s.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
