/*
 * Nodes: the sum of all ranks by one call, and in three steps, of which only the second
 * leaves the node. What leaves a node is counted.
 *
 *     mpirun -np 4 ./nodes [-n COUNT] [--no-p2p] [--no-shm] [-h]
 */
#define _GNU_SOURCE // setenv
#include "clock.h"
#include "place.h" // which ranks share a node

enum { ONE_CALL, THREE_STEPS, SCATTER, ACROSS, GATHER, ROWS, REPEAT = 5 };

struct sums {
    struct place at;
    ncclComm_t all, inside, across; // all ranks; a team; one rank of each team
    cudaStream_t stream;
    size_t count;                       // floats in sendbuf and in recvbuf
    float *sendbuf, *partial, *recvbuf; // partial has one part of `team`
};

/* Queues one row of the table. Any row may be repeated: none changes what it reads. */
static void queue(const struct sums *s, int row) {
    const size_t part = s->count / (size_t)s->at.team;
    float *mine = s->recvbuf + (size_t)(s->at.local % s->at.team) * part;
    switch (row) {
    case ONE_CALL:
        CHECK_NCCL(ncclAllReduce(s->sendbuf, s->recvbuf, s->count, ncclFloat32, ncclSum,
                                 s->all, s->stream));
        break;
    case THREE_STEPS:
        queue(s, SCATTER);
        queue(s, ACROSS);
        queue(s, GATHER);
        break;
    case SCATTER: // Each rank of a team gets the team's sum of one part …
        CHECK_NCCL(ncclReduceScatter(s->sendbuf, s->partial, part, ncclFloat32, ncclSum,
                                     s->inside, s->stream));
        break;
    case ACROSS: // … adds to it what the other teams have for this part …
        CHECK_NCCL(ncclAllReduce(s->partial, mine, part, ncclFloat32, ncclSum, s->across,
                                 s->stream));
        break;
    case GATHER: // … and gives it to the others of its team.
        CHECK_NCCL(
            ncclAllGather(mine, s->recvbuf, part, ncclFloat32, s->inside, s->stream));
        break;
    }
}

/* Bytes that this rank sends to another node in a ring, in which every rank sends
 * 2 (n - 1) / n of the buffer to the next one. NCCL's rings go through all ranks of a
 * node before they leave it, so only one rank of a node and a ring sends to the next
 * node. With teams of 1 there is one ring, of all ranks; else one for each part of the
 * buffer. */
static double bytes_out(const struct place *p, int team, size_t count) {
    const int n = p->nranks / team;
    const bool last = p->local / team == p->nlocal / team - 1;
    const double part = (double)(count * sizeof(float)) / team;
    return p->nnodes > 1 && last ? 2.0 * (n - 1) / n * part : 0;
}

/* Times one row, and prints it with the bytes that leave a node. */
static void print_row(const struct sums *s, int row) {
    static const char *const names[ROWS] = {
        "one all-reduce", "in three steps", "  reduce-scatter in the node",
        "  all-reduce between nodes", "  all-gather in the node"};
    const bool crosses = row != SCATTER && row != GATHER;
    double out =
        crosses ? bytes_out(&s->at, row == ONE_CALL ? 1 : s->at.team, s->count) : 0;
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < REPEAT; i++)
            queue(s, row);
        CHECK_CUDA(cudaStreamSynchronize(s->stream));
        stopwatch_stop(&watch, REPEAT);
    }
    if (s->at.rank == 0)
        printf("%-28s %17.0f %11.1f\n", names[row], out / s->at.nnodes,
               watch.seconds * 1e6);
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct sums s = {.at = find_place()};
    const struct place *at = &s.at;
    bool no_p2p = false, no_shm = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "floats in a buffer; rounded up, so that a node can share them",
         .number = &s.count, .least = 1, .usual = LESSON_CPU_BUILD ? 1 << 18 : 1 << 24},
        {"--no-p2p", NULL, "inside a node without NVLink: through the host's memory",
         .flag = &no_p2p},
        {"--no-shm", NULL, "with --no-p2p: inside a node, too, by the network",
         .flag = &no_shm},
        {0}};
    lesson_options(argc, argv, options);
    // NCCL reads these once in a process, so they are set before its first call.
    if (no_p2p || no_shm)
        setenv("NCCL_NVLS_ENABLE", "0", 1);
    if (no_p2p)
        setenv("NCCL_P2P_DISABLE", "1", 1);
    if (no_shm)
        setenv("NCCL_SHM_DISABLE", "1", 1);
    if (LESSON_CPU_BUILD && (no_p2p || no_shm) && at->rank == 0)
        puts("CPU build: --no-p2p and --no-shm change nothing here.");
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(at->local % ndevices));
    lesson_one_gpu_per_rank();

    ncclUniqueId id;
    if (at->rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&s.all, at->nranks, id, at->rank));
    // The color says with whom, the key in which order.
    const int team = at->node * at->nranks + at->local / at->team;
    CHECK_NCCL(ncclCommSplit(s.all, team, at->local, &s.inside, NULL));
    CHECK_NCCL(ncclCommSplit(s.all, at->local % at->team, team, &s.across, NULL));
    CHECK_CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));

    const size_t share = (size_t)at->team, part = (s.count + share - 1) / share;
    s.count = part * share;
    const size_t bytes = s.count * sizeof(float);
    lesson_need_memory(3 * bytes);
    float *host = lesson_malloc(bytes);
    CHECK_CUDA(cudaMalloc((void **)&s.sendbuf, bytes));
    CHECK_CUDA(cudaMalloc((void **)&s.partial, part * sizeof(float)));
    CHECK_CUDA(cudaMalloc((void **)&s.recvbuf, bytes));
    for (size_t i = 0; i < s.count; i++)
        host[i] = (float)(at->rank + 1 + (int)(i % 64));
    CHECK_CUDA(cudaMemcpyAsync(s.sendbuf, host, bytes, cudaMemcpyHostToDevice, s.stream));
    CHECK_CUDA(cudaStreamSynchronize(s.stream));

    for (int row = ONE_CALL; row <= THREE_STEPS; row++) {
        // Zeros, so that the second cannot pass with the sums of the first.
        CHECK_CUDA(cudaMemsetAsync(s.recvbuf, 0, bytes, s.stream));
        queue(&s, row);
        CHECK_CUDA(cudaStreamSynchronize(s.stream));
        CHECK_CUDA(cudaMemcpy(host, s.recvbuf, bytes, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < s.count; i++)
            lesson_expect(i, (double)host[i],
                          at->nranks * ((at->nranks + 1) / 2.0 + (double)(i % 64)));
    }
    lesson_say_whose_times();
    if (at->rank == 0)
        printf(
            "%d node%s, teams of %d, a buffer of %zu B; bytes as rings would send them\n"
            "%-28s %17s %11s\n",
            at->nnodes, at->nnodes == 1 ? "" : "s", at->team, bytes, "",
            "out of a node (B)", "time (us)");
    for (int row = 0; row < ROWS; row++)
        print_row(&s, row);
    const int exit_code = lesson_verdict("element");

    CHECK_CUDA(cudaFree(s.recvbuf));
    CHECK_CUDA(cudaFree(s.partial));
    CHECK_CUDA(cudaFree(s.sendbuf));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(s.stream));
    CHECK_NCCL(ncclCommDestroy(s.across));
    CHECK_NCCL(ncclCommDestroy(s.inside));
    CHECK_NCCL(ncclCommDestroy(s.all));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
