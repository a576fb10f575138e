/*
 * Bandwidth: what a collective costs at every size, and the law behind it.
 *
 *     mpirun -np 4 ./bandwidth [--op NAMES] [--max BYTES] [--csv FILE] [-h]
 *
 * Beside it: operations.h queues them and knows their results, report.h has the options
 * and prints the rows, law.h fits the line.
 */
#include "clock.h"
#include "law.h"
#include "operations.h"
#include "report.h"
#include "window.h"

/* How often the bytes of a buffer cross one rank's link, with n ranks. */
static double once(int n) {
    return n > 0;
}
static double others(int n) {
    return (n - 1.0) / n;
}
static double twice_others(int n) {
    return 2 * others(n);
}

/* One row for each operation: its name, how it is queued, what element i of its result
 * must be, its bus factor, and whether every rank has a part of the buffer. */
static const struct operation {
    const char *name;
    ncclResult_t (*queue)(const struct call *c, const float *send, float *recv);
    float (*result)(const struct call *c, size_t i);
    double (*factor)(int nranks);
    bool parts;
} operations[] = {
    {"broadcast", broadcast, of_root, once, false},
    {"reduce", reduce, sum_at_root, once, false},
    {"all_reduce", all_reduce, sum, twice_others, false},
    {"reduce_scatter", reduce_scatter, my_sums, others, true},
    {"all_gather", all_gather, all_parts, others, true},
    {"all_to_all", all_to_all, my_parts, others, true},
    {"send_recv", send_recv, of_previous, once, false},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

enum { BATCH = 20 };                      // operations in a batch, at most
static const double batch_seconds = 0.02; // and no more than fit these

/* Queues a batch. Each operation takes another part of the buffers, `room` bytes long:
 * else a cache would answer for the link. */
static void queue_batch(const struct operation *op, const struct call *c,
                        const float *send, float *recv, size_t room, int batch) {
    const size_t stride = (c->count * sizeof(float) + 511) / 512 * 512;
    const size_t parts = room / stride > 0 ? room / stride : 1;
    for (int i = 0; i < batch; i++) {
        const size_t at = (size_t)i % parts * (stride / sizeof(float));
        CHECK_NCCL(op->queue(c, send + at, recv + at));
    }
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

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    if (c.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&c.comm, c.nranks, id, c.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));

    // As long as the largest size that fits; the smaller ones use a part of them.
    report_fit(&report);
    const size_t room = report.room;
    float *host = lesson_malloc(room);
    float *buffers[2]; // on the GPU
    ncclWindow_t windows[2] = {NULL, NULL};
    for (int b = 0; b < 2; b++) {
        if (!report.registered) {
            CHECK_CUDA(cudaMalloc((void **)&buffers[b], room));
            continue;
        }
        // NCCL knows these buffers on all ranks, so that a GPU can write into another's.
        CHECK_NCCL(ncclMemAlloc((void **)&buffers[b], room));
        CHECK_NCCL(ncclCommWindowRegister(c.comm, buffers[b], room, &windows[b],
                                          NCCL_WIN_COLL_SYMMETRIC));
    }
    float *sendbuf = buffers[0], *recvbuf = buffers[1];
    for (size_t i = 0; i < room / sizeof(float); i++)
        host[i] = value(c.rank, i);
    CHECK_CUDA(cudaMemcpyAsync(sendbuf, host, room, cudaMemcpyHostToDevice, c.stream));
    CHECK_CUDA(cudaStreamSynchronize(c.stream));

    report_head();
    for (int o = 0; o < OPERATIONS; o++) {
        const struct operation *op = &operations[o];
        struct law law = {0};
        size_t size = chosen[o] ? report.min : 0;
        for (; size > 0; size = report_next(&report, size)) {
            c.part = size / sizeof(float) / (size_t)c.nranks;
            c.count = op->parts ? c.part * (size_t)c.nranks : size / sizeof(float);
            const size_t bytes = c.count * sizeof(float);
            if (!report_possible(&report, op->name, size, bytes))
                continue;

            // Once to be checked, which also lets NCCL make its connections.
            CHECK_CUDA(cudaMemsetAsync(recvbuf, 255, bytes, c.stream));
            CHECK_NCCL(op->queue(&c, sendbuf, recvbuf));
            CHECK_CUDA(cudaStreamSynchronize(c.stream));
            CHECK_CUDA(cudaMemcpy(host, recvbuf, bytes, cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < c.count; i++) {
                const float expected = op->result(&c, i);
                if (expected != any)
                    lesson_expect(i, (double)host[i], (double)expected);
            }

            // Warm up: a GPU that has idled is slow for a moment. These batches do not
            // count, but they tell how many operations are enough for one.
            const double warm_up = LESSON_CPU_BUILD || law.nrows > 0 ? 0 : 0.3;
            struct stopwatch warm = {0}, watch = {0};
            int batch = 1;
            while (warm.nbatches < 2 || warm.spent < warm_up) {
                stopwatch_start(&warm);
                queue_batch(op, &c, sendbuf, recvbuf, room, batch);
                CHECK_CUDA(cudaStreamSynchronize(c.stream));
                stopwatch_stop(&warm, batch);
                const double enough = batch_seconds / warm.seconds;
                batch = enough < 1 ? 1 : enough < BATCH ? (int)enough : BATCH;
            }

            // A graph is a batch recorded: nothing runs until it is launched as a whole.
            cudaGraph_t recorded;
            cudaGraphExec_t graph = NULL;
            if (report.graph) {
                CHECK_CUDA(
                    cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal));
                queue_batch(op, &c, sendbuf, recvbuf, room, batch);
                CHECK_CUDA(cudaStreamEndCapture(c.stream, &recorded));
                CHECK_CUDA(cudaGraphInstantiate(&graph, recorded, 0));
                CHECK_CUDA(cudaGraphDestroy(recorded));
                CHECK_CUDA(cudaGraphLaunch(graph, c.stream)); // the first one is slower
                CHECK_CUDA(cudaStreamSynchronize(c.stream));
            }

            // Batch after batch, until more of them would hardly move the median.
            while (!stopwatch_settled(&watch)) {
                stopwatch_start(&watch); // a barrier: all ranks begin together
                if (graph)
                    CHECK_CUDA(cudaGraphLaunch(graph, c.stream));
                else
                    queue_batch(op, &c, sendbuf, recvbuf, room, batch);
                CHECK_CUDA(cudaStreamSynchronize(c.stream)); // timed: a call only queues
                stopwatch_stop(&watch, batch); // the slowest rank's time counts
            }
            if (graph)
                CHECK_CUDA(cudaGraphExecDestroy(graph));

            const double algbw = (double)bytes / watch.seconds;
            const double busbw = algbw * op->factor(c.nranks);
            report_row(&report, op->name, bytes, watch.seconds, algbw, busbw,
                       watch.nbatches * batch);
            law_add(&law, (double)bytes, watch.seconds);
        }
        law_fit(&law);
        law_print(&law); // T = alpha + n / beta
    }
    report_close(&report);
    const int exit_code = lesson_verdict("element");

    // In reverse order: nothing may go while something made later still uses it.
    for (int b = 1; b >= 0; b--) {
        if (windows[b]) // NULL: not registered, or NCCL had no use for it
            CHECK_NCCL(ncclCommWindowDeregister(c.comm, windows[b]));
        if (report.registered)
            CHECK_NCCL(ncclMemFree(buffers[b]));
        else
            CHECK_CUDA(cudaFree(buffers[b]));
    }
    free(host);
    CHECK_CUDA(cudaStreamDestroy(c.stream));
    CHECK_NCCL(ncclCommDestroy(c.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
