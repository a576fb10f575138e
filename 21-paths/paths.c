/*
 * Paths: which algorithm and which protocol NCCL takes for an all-reduce, and what the
 * others would have cost.
 *
 *     mpirun -np 4 ./paths [-n COUNT] [--model] [-h]
 */
#define _GNU_SOURCE // setenv
#include "clock.h"

#include <math.h>

enum { REPEAT = 20, WAYS = 7, FACTOR = 16 };

/* What NCCL may be asked for. It reads both variables when a communicator is made. */
static const struct way {
    const char *name, *algorithm, *protocol;
} ways[WAYS] = {
    {"NCCL", NULL, NULL},         {"ring LL", "Ring", "LL"}, {"LL128", "Ring", "LL128"},
    {"Simple", "Ring", "Simple"}, {"tree LL", "Tree", "LL"}, {"LL128", "Tree", "LL128"},
    {"Simple", "Tree", "Simple"},
};

/* A communicator that may go this way only. With way 0, NCCL chooses for itself. */
static ncclComm_t communicator(const struct way *way, int rank, int nranks) {
    if (way->algorithm) {
        setenv("NCCL_ALGO", way->algorithm, 1);
        setenv("NCCL_PROTO", way->protocol, 1);
    }
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
    return comm;
}

/* Seconds of an all-reduce of `count` floats; its result is checked. */
static double seconds_of(ncclComm_t comm, float *sendbuf, float *recvbuf, float *host,
                         size_t count, int nranks, cudaStream_t stream) {
    const size_t bytes = count * sizeof(float);
    struct stopwatch watch = {0};
    // Three rounds do not count: a call that connects the ranks, and two that only tell
    // whether calls are slow here.
    for (int round = 0; round < 4 || !stopwatch_settled(&watch); round++) {
        const int repeat = round < 3 ? 1 : stopwatch_repeat(REPEAT);
        if (round == 1 || round == 3)
            watch = (struct stopwatch){0};
        stopwatch_start(&watch);
        for (int i = 0; i < repeat; i++)
            CHECK_NCCL(ncclAllReduce(sendbuf, recvbuf, count, ncclFloat32, ncclSum, comm,
                                     stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        stopwatch_stop(&watch, repeat);
        if (round == 2 && count <= 256)
            stopwatch_hurry(watch.batches[0]);
    }
    CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i],
                      nranks * (nranks + 1) / 2.0 + nranks * (double)(i % 64));
    return watch.seconds;
}

/* The law of lesson 06, for nodes of 8 GPUs: a start, then `inside` hops within nodes and
 * `between` hops between nodes, one after the other, and each GPU sends `bytes` bytes. */
static double law(double inside, double between, double bytes) {
    // Seconds, from cpu/machines/h200.conf. 8 B on two GPUs: 3.9 + 2 * 1.1 = 6.1 µs.
    const double start = 3.9e-6, hop = 1.1e-6, network_hop = 5e-6;
    const double rate = 366e9; // NVLink; a node's eight adapters would carry 400e9
    return start + inside * hop + between * network_hop + bytes / rate;
}

/* Twice round the ring: 2(n - 1) hops. Two of each node's lead to the next node. */
static double ring_seconds(int n, double bytes) {
    const int between = n > 8 ? 2 * n / 8 : 0;
    return law(2 * (n - 1) - between, between, 2.0 * (n - 1) / n * bytes);
}

/* Up and down again: a chain in each node, a tree of nodes. NCCL counts on 0.92 of the
 * ring's bandwidth there (src/graph/tuning.cc). */
static double tree_seconds(int n, double bytes) {
    return law(2 * 7, 2 * ceil(log2(n / 8.0)), 2 * bytes / 0.92);
}

static void print_model(void) {
    puts("by the figures of an H200 (latency of LL, bandwidth of Simple):");
    printf("%5s  %12s %12s  %12s %12s  %s\n", "ranks", "ring, 8 B", "tree, 8 B",
           "ring, 1 GiB", "tree, 1 GiB", "ring wins from");
    for (int n = 8; n <= 1024; n *= 2) {
        double size = 8;
        while (ring_seconds(n, size) > tree_seconds(n, size))
            size *= 2;
        printf("%5d  %9.1f us %9.1f us  %9.2f ms %9.2f ms  %7.0f MiB\n", n,
               ring_seconds(n, 8) * 1e6, tree_seconds(n, 8) * 1e6,
               ring_seconds(n, 1 << 30) * 1e3, tree_seconds(n, 1 << 30) * 1e3,
               floor(size / (1 << 20)));
    }
    printf("\n");
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    size_t most = 0;
    bool model = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "floats in the largest buffer", .number = &most, .least = 2,
         .usual = LESSON_CPU_BUILD ? 1 << 17 : 1 << 25},
        {"--model", NULL, "also ring and tree on 8 to 1,024 ranks", .flag = &model},
        {0}};
    lesson_options(argc, argv, options);
    const size_t bytes = most * sizeof(float);
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();
    lesson_need_memory(2 * bytes);
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host = lesson_malloc(bytes), *sendbuf, *recvbuf;
    CHECK_CUDA(cudaMalloc((void **)&sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&recvbuf, bytes));
    for (size_t i = 0; i < most; i++)
        host[i] = (float)(rank + 1 + (int)(i % 64));
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));

    ncclComm_t comms[WAYS];
    for (int w = 0; w < WAYS; w++)
        comms[w] = communicator(&ways[w], rank, nranks);
    lesson_say_whose_times();
    if (rank == 0) {
        printf("%12s", "bytes");
        for (int w = 0; w < WAYS; w++)
            printf("%11s", ways[w].name);
        printf("\n");
    }
    for (size_t count = 2; count <= most; count *= FACTOR) {
        double seconds[WAYS];
        int best = 1;
        for (int w = 0; w < WAYS; w++) {
            seconds[w] =
                seconds_of(comms[w], sendbuf, recvbuf, host, count, nranks, stream);
            best = w > 0 && seconds[w] < seconds[best] ? w : best;
        }
        if (rank == 0)
            printf("%12zu", count * sizeof(float));
        for (int w = 0; w < WAYS && rank == 0; w++)
            printf("%10.2f%s", seconds[w] * 1e6,
                   w == best      ? "*"
                   : w + 1 < WAYS ? " "
                                  : "");
        if (rank == 0)
            printf("\n");
    }
    if (rank == 0)
        printf("in us; * is the fastest of the six\n\n");
    if (model && rank == 0)
        print_model();
    const int exit_code = lesson_verdict("element");

    for (int w = WAYS - 1; w >= 0; w--)
        CHECK_NCCL(ncclCommDestroy(comms[w]));
    CHECK_CUDA(cudaFree(recvbuf));
    CHECK_CUDA(cudaFree(sendbuf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
