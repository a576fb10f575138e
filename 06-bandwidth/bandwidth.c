/*
 * Bandwidth: what a collective costs at every size, and the law behind it.
 *
 *     mpirun -np 4 ./bandwidth [--op NAMES] [--max BYTES] [--csv FILE] [-h]
 *
 * How to measure is in this file. Beside it, operations.h queues the operations and knows
 * their results, factors.h has their bus factors, report.h has the options and prints the
 * rows, law.h fits the line, and modes.h has what --register and --graph need.
 */
#include "clock.h"
#include "law.h"
#include "modes.h"
#include "report.h"
#include "factors.h"

enum { BATCH = 20 };                      // operations in a batch, at most
static const double batch_seconds = 0.02; // and no more than fit into this time

/* As long as the largest size that fits; smaller sizes use a part of them. */
struct buffers {
    size_t room;               // bytes of each
    float *host, *send, *recv; // the last two on the GPU
};

/* Queues a batch. Each operation uses a different part of the buffers: otherwise you
 * would measure a cache. */
static void queue_batch(const struct operation *op, const struct call *c,
                        const struct buffers *b, int batch) {
    const size_t stride = (c->count * sizeof(float) + 511) / 512 * 512;
    const size_t parts = b->room / stride > 0 ? b->room / stride : 1;
    for (int i = 0; i < batch; i++) {
        const size_t at = (size_t)i % parts * (stride / sizeof(float));
        CHECK_NCCL(op->queue(c, b->send + at, b->recv + at));
    }
}

/* Batches that do not count, for at least so many seconds: a GPU that has been idle is
 * slow for a moment. Returns how many operations are enough for a batch. */
static int warm_up(const struct operation *op, const struct call *c,
                   const struct buffers *b, double seconds) {
    struct stopwatch warm = {0};
    int batch = 1;
    while (warm.nbatches < stopwatch_repeat(2) || warm.spent < seconds) {
        stopwatch_start(&warm);
        queue_batch(op, c, b, batch);
        CHECK_CUDA(cudaStreamSynchronize(c->stream));
        stopwatch_stop(&warm, batch);
        const double enough = batch_seconds / warm.seconds;
        batch = enough < 1 ? 1 : enough < BATCH ? (int)enough : BATCH;
    }
    if (c->count <= 256)
        stopwatch_hurry(warm.batches[0]); // the shortest
    return stopwatch_repeat(batch);
}

/* Batch after batch, until more of them would hardly move the median. */
static struct stopwatch measure(const struct operation *op, const struct call *c,
                                const struct buffers *b, int batch, bool as_graph) {
    cudaGraphExec_t graph = NULL;
    if (as_graph) {
        record_begin(c->stream);
        queue_batch(op, c, b, batch);
        graph = record_end(c->stream);
    }
    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch); // a barrier: all ranks begin together
        if (graph)
            CHECK_CUDA(cudaGraphLaunch(graph, c->stream));
        else
            queue_batch(op, c, b, batch);
        CHECK_CUDA(cudaStreamSynchronize(c->stream)); // timed: a call only queues
        stopwatch_stop(&watch, batch);                // the slowest rank's time counts
    }
    if (graph)
        CHECK_CUDA(cudaGraphExecDestroy(graph));
    return watch;
}

/* One operation at all sizes: a row for each, and the line through them. */
static void all_sizes(const struct operation *op, struct call *c, const struct buffers *b,
                      const struct report *report) {
    struct law law = {0};
    for (size_t size = report->min; size > 0; size = report_next(report, size)) {
        c->part = size / sizeof(float) / (size_t)c->nranks;
        c->count = op->parts ? c->part * (size_t)c->nranks : size / sizeof(float);
        const size_t bytes = c->count * sizeof(float);
        if (!report_possible(report, op->name, size, bytes))
            continue;
        // The first call at a size is checked: NCCL makes its connections here.
        check(op, c, b->send, b->recv, b->host);
        const bool first = law.nrows == 0;
        const int batch = warm_up(op, c, b, LESSON_CPU_BUILD || !first ? 0 : 0.3);
        const struct stopwatch watch = measure(op, c, b, batch, report->graph);

        const double algbw = (double)bytes / watch.seconds;
        const double busbw = algbw * op->factor(c->nranks);
        report_row(report, op->name, bytes, watch.seconds, algbw, busbw,
                   watch.nbatches * batch);
        law_add(&law, (double)bytes, watch.seconds);
    }
    law_fit(&law);
    law_print(&law); // T = alpha + n / beta
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct call c;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &c.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &c.nranks));
    const char *names[OPERATIONS + 1] = {0};
    bool chosen[OPERATIONS] = {0};
    for (int i = 0; i < OPERATIONS; i++)
        names[i] = operations[i].name;
    struct report report = report_options(argc, argv, names, chosen);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(c.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (c.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&c.comm, c.nranks, id, c.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));

    // The buffers: on the host, and two on the GPU.
    report_fit(&report);
    struct buffers b = {.room = report.room, .host = lesson_malloc(report.room)};
    ncclWindow_t windows[2];
    b.send = buffer_malloc(c.comm, b.room, report.registered, &windows[0]);
    b.recv = buffer_malloc(c.comm, b.room, report.registered, &windows[1]);
    for (size_t i = 0; i < b.room / sizeof(float); i++)
        b.host[i] = value(c.rank, i);
    CHECK_CUDA(cudaMemcpyAsync(b.send, b.host, b.room, cudaMemcpyHostToDevice, c.stream));
    CHECK_CUDA(cudaStreamSynchronize(c.stream));

    report_head();
    for (int o = 0; o < OPERATIONS; o++)
        if (chosen[o])
            all_sizes(&operations[o], &c, &b, &report);
    report_close(&report);
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    buffer_free(c.comm, b.recv, report.registered, windows[1]);
    buffer_free(c.comm, b.send, report.registered, windows[0]);
    free(b.host);
    CHECK_CUDA(cudaStreamDestroy(c.stream));
    CHECK_NCCL(ncclCommDestroy(c.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
