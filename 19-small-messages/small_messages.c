/*
 * Small messages: sixteen sums of eight bytes, in six ways, and how long each way takes.
 *
 *     mpirun -np 4 ./small_messages [-n COUNT] [--values V] [-h]
 *
 * Beside it, report.h has the options, the names of the ways, the output and the check.
 */
#include "clock.h"
#include "older.h"
#include "report.h"

/* How many times a graph holds the calls of a way, and how many launches come before the
 * host waits. On GPUs both are as in nccl-tests with -G 20. */
enum { REPEAT = 20, LAUNCHES = 20 };

/* What a way needs. A value is `count` numbers; sendbuf and recvbuf hold all of them. */
struct values {
    ncclComm_t comm;
    cudaStream_t stream;
    int n;
    size_t count;
    float *sendbuf, *recvbuf; // on the GPU
};

static void queue(enum way way, const struct values *v) {
    if (way == FLOOR) { // the least that a GPU can be asked to do
        CHECK_CUDA(cudaMemsetAsync(v->recvbuf, 0, sizeof(float), v->stream));
    } else if (way >= TOGETHER) {
        CHECK_NCCL(ncclAllReduce(v->sendbuf, v->recvbuf, (size_t)v->n * v->count,
                                 ncclFloat32, ncclSum, v->comm, v->stream));
    } else {
        // A group is launched once, at its end, instead of once a call.
        if (way == GROUPED)
            CHECK_NCCL(ncclGroupStart());
        for (int i = 0; i < v->n; i++)
            CHECK_NCCL(ncclAllReduce(v->sendbuf + (size_t)i * v->count,
                                     v->recvbuf + (size_t)i * v->count, v->count,
                                     ncclFloat32, ncclSum, v->comm, v->stream));
        if (way == GROUPED)
            CHECK_NCCL(ncclGroupEnd());
    }
}

/* Records some all-reduces. They run when the graph is launched, with one call. */
static cudaGraphExec_t record(enum way way, const struct values *v, int repeat) {
    cudaGraph_t recorded;
    cudaGraphExec_t graph;
    CHECK_CUDA(cudaStreamBeginCapture(v->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeat; i++)
        queue(way, v);
    CHECK_CUDA(cudaStreamEndCapture(v->stream, &recorded));
    CHECK_CUDA(cudaGraphInstantiate(&graph, recorded, 0));
    CHECK_CUDA(cudaGraphDestroy(recorded));
    return graph;
}

/* Whether a call takes milliseconds here. The first one, which connects the ranks, does
 * not count; a modelled clock need not be asked. */
static void ask_whether_slow(enum way way, const struct values *v) {
    struct stopwatch watch = {0};
    for (int i = 0; i < 4 && !lesson_modelled() && !stopwatch_hurries; i++) {
        stopwatch_start(&watch);
        queue(way, v);
        CHECK_CUDA(cudaStreamSynchronize(v->stream));
        stopwatch_stop(&watch, way == ONE_BY_ONE ? v->n : 1);
    }
    stopwatch_hurry(watch.batches[0]); // the shortest
}

/* Seconds that all values take in this way: the median of many batches. */
static double seconds_of(enum way way, const struct values *v) {
    struct stopwatch watch = {0};
    const bool recorded = way == GRAPH || way == WINDOW_GRAPH;
    // The CPU build is slow, and real times mean little there.
    const bool few = LESSON_CPU_BUILD && !(recorded && lesson_modelled());
    ask_whether_slow(way, v);
    const int launches = few ? 1 : stopwatch_repeat(LAUNCHES);
    const int repeat = stopwatch_repeat(REPEAT);
    cudaGraphExec_t graph = recorded ? record(way, v, repeat) : NULL;
    // Once without the watch: NCCL connects, a graph is brought to the GPU.
    if (graph)
        CHECK_CUDA(cudaGraphLaunch(graph, v->stream));
    else
        queue(way, v);
    CHECK_CUDA(cudaStreamSynchronize(v->stream));
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int launch = 0; launch < launches; launch++) {
            if (graph)
                CHECK_CUDA(cudaGraphLaunch(graph, v->stream));
            for (int i = 0; i < repeat && !graph; i++)
                queue(way, v);
        }
        CHECK_CUDA(cudaStreamSynchronize(v->stream));
        stopwatch_stop(&watch, launches * repeat);
    }
    if (graph)
        CHECK_CUDA(cudaGraphExecDestroy(graph));
    return watch.seconds;
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    size_t count, nvalues;
    report_options(argc, argv, &count, &nvalues);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    struct values v = {.n = (int)nvalues, .count = count};
    CHECK_NCCL(ncclCommInitRank(&v.comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&v.stream, cudaStreamNonBlocking));

    // Two pairs of buffers: plain ones, and windows, which every GPU can read and write
    // in the memory of every other: NCCL then copies nothing into buffers of its own.
    const size_t numbers = nvalues * count, bytes = numbers * sizeof(float);
    float *host = lesson_malloc(bytes), *buffers[4];
    ncclWindow_t windows[2] = {NULL, NULL};
    for (int b = 0; b < 2; b++) {
        CHECK_CUDA(cudaMalloc((void **)&buffers[b], bytes));
        CHECK_NCCL(ncclMemAlloc((void **)&buffers[2 + b], bytes));
        CHECK_NCCL(ncclCommWindowRegister(v.comm, buffers[2 + b], bytes, &windows[b],
                                          NCCL_WIN_COLL_SYMMETRIC));
    }
    for (size_t i = 0; i < numbers; i++)
        host[i] = (float)(rank + 1 + (int)(i % 1000));

    report_head();
    for (enum way way = 0; way < WAYS; way++) {
        float **pair = way >= WINDOW ? &buffers[2] : &buffers[0];
        v.sendbuf = pair[0];
        v.recvbuf = pair[1];
        CHECK_CUDA(
            cudaMemcpyAsync(v.sendbuf, host, bytes, cudaMemcpyHostToDevice, v.stream));
        CHECK_CUDA(cudaMemsetAsync(v.recvbuf, 255, bytes, v.stream));
        report_row(way, seconds_of(way, &v), v.n);
        report_check(way, v.recvbuf, numbers);
    }
    const int exit_code = lesson_verdict("element");

    // In reverse order, because what was made later uses what was made earlier.
    for (int b = 1; b >= 0; b--) {
        if (windows[b]) // NULL: NCCL can't make one here
            CHECK_NCCL(ncclCommWindowDeregister(v.comm, windows[b]));
        CHECK_NCCL(ncclMemFree(buffers[2 + b]));
        CHECK_CUDA(cudaFree(buffers[b]));
    }
    free(host);
    CHECK_CUDA(cudaStreamDestroy(v.stream));
    CHECK_NCCL(ncclCommDestroy(v.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
