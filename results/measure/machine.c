/*
 * What single operations take on this machine, as a machine of the modelled clock:
 *
 *     mpirun -np 4 machine >mine.conf        (make measure PARTS=model)
 *
 * Rank 0 prints the lines. What they mean stands in cpu/machines/h200.conf, and what is
 * not measured here is taken over from there. NCCL's operations are timed on 2 ranks and
 * on all.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "older.h"

#include "../06-bandwidth/operations.h"

#include <cublas_v2.h>

enum {
    BATCH = 20,
    MANY =
        LESSON_CPU_BUILD ? BATCH : 100,   // in a row: the wait at the end is a small part
    LAUNCHES = LESSON_CPU_BUILD ? 1 : 20, // of a graph
    SMALL = 8,
    LARGEST = LESSON_CPU_BUILD ? 1 << 18 : 1 << 28, // that is timed in a long row
    ROOM = LESSON_CPU_BUILD ? 1 << 19 : 1 << 30,    // of a buffer
    SIDE = LESSON_CPU_BUILD ? 64 : 4096,            // of a matrix
};
#define HAS_PUT (NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2))

struct operation {
    const char *name;
    ncclResult_t (*queue)(const struct call *c, const float *send, float *recv);
    float (*result)(const struct call *c, size_t i);
    bool parts, on_windows; // all ranks have a part of it; NCCL gains by windows
};

static const struct operation operations[] = {
    {"all_reduce", all_reduce, sum, false, true},
    {"broadcast", broadcast, of_root, false, false},
    {"reduce", reduce, sum_at_root, false, false},
    {"reduce_scatter", reduce_scatter, my_sums, true, true},
    {"all_gather", all_gather, all_parts, true, true},
    {"all_to_all", all_to_all, my_parts, true, false},
    {"send_recv", send_recv, of_previous, false, false},
};
enum { ALL_REDUCE, BROADCAST, REDUCE, SEND_RECV = 6, OPERATIONS };

static int rank, nranks;
static cudaStream_t stream;
static float *plain[2], *windowed[2]; // a buffer to send, one to receive into
static cublasHandle_t blas;

/* What a time is taken of. It queues `times` of it, on ranks that take part. */
struct work {
    void (*queue)(const struct work *w, int i);
    const struct call *call; // comm is NULL on ranks that do not take part
    const struct operation *operation;
    float **buffers;
    size_t bytes;
    const void *from;
    void *to;
    enum cudaMemcpyKind kind;
    int side;
};

static void queue_times(const struct work *w, int times) {
    for (int i = 0; i < times; i++)
        w->queue(w, i);
}

/* Seconds of one: the median of batches of `times`, each waited for once. */
static double in_a_row(const struct work *w, int times) {
    struct stopwatch watch = {0};
    for (int round = 0; round < 2 || !stopwatch_settled(&watch); round++) {
        stopwatch_start(&watch);
        queue_times(w, times);
        CHECK_CUDA(cudaStreamSynchronize(stream));
        stopwatch_stop(&watch, times);
        if (round == 1) // two to warm up
            watch = (struct stopwatch){0};
    }
    return watch.seconds;
}

/* A graph that holds so many is launched so often, and then waited for. Seconds of one;
 * or, for the host, of a launch. */
static double in_a_graph(const struct work *w, int times, int launches, bool host) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    struct stopwatch watch = {0};
    queue_times(w, 1); // NCCL connects
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    queue_times(w, times);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round == 0 || !stopwatch_settled(&watch); round++) {
        stopwatch_start(&watch);
        for (int i = 0; i < launches; i++)
            CHECK_CUDA(cudaGraphLaunch(exec, stream));
        if (host)
            stopwatch_stop(&watch, launches);
        CHECK_CUDA(cudaStreamSynchronize(stream));
        if (!host)
            stopwatch_stop(&watch, launches * times);
        if (round == 0)
            watch = (struct stopwatch){0};
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return watch.seconds;
}

/* On the GPU, without the host. */
static double on_the_gpu(const struct work *w) {
    return in_a_graph(w, BATCH, LAUNCHES, false);
}

/* Seconds that the host is kept by one call: so few are queued that none has to wait. Or
 * in a row, if that is shorter: then the host was what the others waited for. */
static double on_the_host(const struct work *w) {
    struct stopwatch watch = {0};
    for (int round = 0; round < 2 || !stopwatch_settled(&watch); round++) {
        stopwatch_start(&watch);
        queue_times(w, BATCH);
        stopwatch_stop(&watch, BATCH);
        CHECK_CUDA(cudaStreamSynchronize(stream));
        if (round == 1)
            watch = (struct stopwatch){0};
    }
    const double row = in_a_row(w, MANY);
    return row < watch.seconds ? row : watch.seconds;
}

static void say(const char *name, double number, const char *comment) {
    if (rank == 0)
        printf("%-17s %-8.4g # %s\n", name, number, comment);
}

/* --- What can be timed ------------------------------------------------------------- */

static void queue_nccl(const struct work *w, int i) {
    (void)i;
    if (w->call->comm)
        CHECK_NCCL(w->operation->queue(w->call, w->buffers[0], w->buffers[1]));
}

/* A group of sixteen all-reduces, each of its own part of the buffers. */
static void queue_group(const struct work *w, int i) {
    (void)i;
    CHECK_NCCL(ncclGroupStart());
    for (size_t k = 0; k < 16 && w->call->comm; k++)
        CHECK_NCCL(w->operation->queue(w->call, w->buffers[0] + 128 * k,
                                       w->buffers[1] + 128 * k));
    CHECK_NCCL(ncclGroupEnd());
}

static void queue_copy(const struct work *w, int i) {
    (void)i;
    CHECK_CUDA(cudaMemcpyAsync(w->to, w->from, w->bytes, w->kind, stream));
}

static void queue_set(const struct work *w, int i) {
    (void)i;
    CHECK_CUDA(cudaMemsetAsync(w->to, 0, sizeof(float), stream));
}

static void queue_sum(const struct work *w, int i) {
    const float one = 1;
    (void)i;
    CHECK_CUBLAS(cublasSaxpy(blas, (int)(w->bytes / sizeof(float)), &one, plain[0], 1,
                             plain[1], 1));
}

static void queue_product(const struct work *w, int i) {
    const float one = 1, zero = 0;
    const int n = w->side;
    (void)i;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, plain[0], n,
                             plain[0] + (size_t)n * n, n, &zero, plain[1], n));
}

static void queue_event(const struct work *w, int i) {
    cudaEvent_t *events = w->to;
    CHECK_CUDA(cudaEventRecord(events[i % BATCH], stream));
    CHECK_CUDA(cudaStreamWaitEvent(stream, events[i % BATCH], 0));
}

static void queue_question(const struct work *w, int i) {
    (void)w, (void)i;
    CHECK_CUDA(cudaStreamQuery(stream));
}

static void queue_message(const struct work *w, int i) {
    char byte = 0;
    (void)w, (void)i;
    if (rank == 0)
        MPI_Send(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank < 2)
        MPI_Recv(&byte, 1, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* --- NCCL -------------------------------------------------------------------------- */

/* A communicator of the first n ranks; on the others comm is NULL. */
static struct call first_ranks(ncclComm_t from, int n, ncclConfig_t *config) {
    struct call c = {.rank = rank, .nranks = n, .stream = stream};
    CHECK_NCCL(
        ncclCommSplit(from, rank < n ? 0 : NCCL_SPLIT_NOCOLOR, rank, &c.comm, config));
    return c;
}

/* Of an operation with so many bytes on these ranks. */
static struct work work_of(const struct operation *op, struct call *c, size_t bytes,
                           float **buffers) {
    c->part = bytes / sizeof(float) / (size_t)c->nranks;
    c->count = op->parts ? c->part * (size_t)c->nranks : bytes / sizeof(float);
    return (struct work){.queue = queue_nccl,
                         .call = c,
                         .operation = op,
                         .buffers = buffers,
                         .bytes = c->count * sizeof(float)};
}

static int batch_of(size_t bytes) {
    return bytes > LARGEST ? 4 : bytes > (1 << 20) ? BATCH : MANY;
}

/* Every element of a small one is compared. */
static void check(const struct operation *op, struct call *c) {
    static float host[8192];
    const struct work w = work_of(op, c, sizeof host, plain);
    for (size_t i = 0; i < c->count; i++)
        host[i] = value(rank, i);
    CHECK_CUDA(cudaMemcpyAsync(plain[0], host, w.bytes, cudaMemcpyHostToDevice, stream));
    queue_nccl(&w, 0);
    CHECK_CUDA(cudaMemcpyAsync(host, plain[1], w.bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < c->count && c->comm; i++)
        if (op->result(c, i) != any)
            lesson_expect(i, (double)host[i], (double)op->result(c, i));
}

/* The tables of all operations on c's ranks. */
static void time_operations(struct call *c) {
    for (const struct operation *op = operations; op < operations + OPERATIONS; op++) {
        check(op, c);
        for (size_t bytes = SMALL; bytes <= ROOM; bytes *= bytes < 32768 ? 8 : 2) {
            const struct work w = work_of(op, c, bytes, plain);
            if (w.bytes == 0)
                continue;
            const double seconds = in_a_row(&w, batch_of(bytes));
            if (rank == 0)
                printf("time %-15s %d %10zu %10.2f\n", op->name, c->nranks, w.bytes,
                       seconds * 1e6);
        }
    }
}

/* With registered buffers. Small collectives are in a graph, where the host's pace does
 * not count: then it is the GPU's time that is measured. Returns the best rate of a send.
 */
static double time_registered(struct call *c) {
    double rate = 0;
    for (const struct operation *op = operations; op < operations + OPERATIONS; op++) {
        const bool sends = op == &operations[SEND_RECV];
        if (!op->on_windows && !sends)
            continue;
        const size_t least = sends ? 32768 : SMALL;
        const size_t most = sends ? ROOM : LARGEST < 65536 ? LARGEST : 65536;
        for (size_t bytes = least; bytes <= most; bytes *= sends ? 4 : 8) {
            const struct work w = work_of(op, c, bytes, windowed);
            if (w.bytes == 0)
                continue;
            const double seconds = sends ? in_a_row(&w, batch_of(bytes)) : on_the_gpu(&w);
            if (rank == 0)
                printf("direct %-13s %d %10zu %10.2f\n", op->name, c->nranks, w.bytes,
                       seconds * 1e6);
            rate = sends && (double)w.bytes / seconds > rate ? (double)w.bytes / seconds
                                                             : rate;
        }
    }
    return rate;
}

/* A ring and a tree, and each of the protocols, on two ranks. */
static void time_ways(void) {
    enum { WAYS = 6, SIZES = 7, FACTOR = 16 }; // 8 B to 128 MiB
    static const char *const names[] = {"Ring", "Tree", "LL", "LL128", "Simple"};
    double seconds[WAYS][SIZES], least = 1;
    const size_t sizes = LESSON_CPU_BUILD ? 4 : SIZES;
    size_t bytes[SIZES] = {SMALL};
    for (size_t i = 1; i < sizes; i++)
        bytes[i] = FACTOR * bytes[i - 1];
    for (int w = 0; w < WAYS; w++) {
        ncclUniqueId id;
        struct call c = {.rank = rank, .nranks = 2, .stream = stream};
        setenv("NCCL_ALGO", names[w / 3], 1);
        setenv("NCCL_PROTO", names[2 + w % 3], 1);
        if (rank == 0)
            CHECK_NCCL(ncclGetUniqueId(&id));
        CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
        if (rank < 2)
            CHECK_NCCL(ncclCommInitRank(&c.comm, 2, id, rank));
        for (size_t i = 0; i < sizes; i++) {
            const struct work work =
                work_of(&operations[ALL_REDUCE], &c, bytes[i], plain);
            seconds[w][i] = in_a_row(&work, bytes[i] > 64 << 20 ? 4 : BATCH);
            least = seconds[w][i] < least ? seconds[w][i] : least;
        }
        if (c.comm)
            CHECK_NCCL(ncclCommDestroy(c.comm));
    }
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
    for (int w = 0; w < WAYS && rank == 0; w++) {
        printf("way %s %-6s %5.1f %6.0f ", names[w / 3], names[2 + w % 3],
               (seconds[w][0] - least) * 1e6,
               (double)bytes[sizes - 1] / seconds[w][sizes - 1] / 1e9);
        for (size_t i = 1; i < sizes; i++)
            printf(" %zu:%.1f", bytes[i], (seconds[w][i] - least) * 1e6);
        printf("\n");
    }
}

/* What a call keeps the host for, and what a graph saves. */
static void time_launches(struct call *c) {
    const struct operation *op = &operations[ALL_REDUCE];
    struct work w = work_of(op, c, SMALL, plain);
    const struct work cheap = work_of(&operations[REDUCE], c, SMALL, plain);
    const double call = on_the_host(&cheap);
    say("nccl_us", call * 1e6, "a reduce of 8 B: what the host needs for the call");
    say("gpu_us", on_the_gpu(&w) * 1e6, "an all-reduce of 8 B in a graph");
    say("graph_us", in_a_graph(&w, 1, BATCH, true) * 1e6,
        "launching a graph of one all-reduce");
    w.queue = queue_group;
    const double group = (on_the_host(&w) - call) / 15, more = group > 0 ? group : 0;
    say("nccl_more_us", more * 1e6, "each further one of a group");
    w = work_of(op, c, SMALL, windowed);
    say("window_us", on_the_host(&w) * 1e6, "an all-reduce of 8 B on windows");
    w = work_of(&operations[SEND_RECV], c, SMALL, plain);
    say("send_us", (on_the_host(&w) - more) * 1e6,
        "a group of a send and a receive, less nccl_more_us");

    // A reduce that the host waits for, less the same in a row: the end of the last rank.
    w = work_of(&operations[REDUCE], c, SMALL, plain);
    const double alone = in_a_row(&w, 1), overhead = alone - on_the_gpu(&w);
    say("wait_us", overhead > call ? (overhead - call) * 1e6 : 0,
        "a reduce of 8 B that the host waits for, less the call and its time in a graph");
    w = work_of(&operations[REDUCE], c, LARGEST / 4, plain);
    const double tail = in_a_row(&w, 1) - in_a_row(&w, BATCH) - overhead;
    say("tail_us", tail > 0 ? tail * 1e6 : 0, "a reduce of 64 MiB alone, and in a row");
}

#if HAS_PUT
static void queue_put(const struct work *w, int i) {
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = (rank + 1) % nranks};
    const size_t there = 512; // not what that rank puts itself
    (void)i;
    CHECK_NCCL(ncclPutSignal(windowed[0], 2, ncclFloat, (rank + nranks - 1) % nranks,
                             *(const ncclWindow_t *)w->from, there, 0, 0, 0,
                             w->call->comm, stream));
    CHECK_NCCL(ncclWaitSignal(1, &one, w->call->comm, stream));
}
#endif

/* --- Copies and computing ---------------------------------------------------------- */

static double rate(double bytes, double seconds) {
    return bytes / seconds / 1e9;
}

static void time_copies(int ndevices) {
    const size_t bytes = LARGEST;
    struct work w = {.queue = queue_copy,
                     .from = plain[0],
                     .to = plain[1],
                     .bytes = SMALL,
                     .kind = cudaMemcpyDeviceToDevice};
    say("copy_us", in_a_row(&w, MANY) * 1e6, "8 B within a GPU");
    w.queue = queue_set;
    say("set_us", in_a_row(&w, MANY) * 1e6, "cudaMemsetAsync of 4 B");
    w.queue = queue_copy;
    w.bytes = bytes;
    say("copy_within_GBs", rate((double)bytes, in_a_row(&w, 4)), "256 MiB within a GPU");
    void *pinned;
    CHECK_CUDA(cudaHostAlloc(&pinned, bytes, 0));
    w.to = pinned, w.kind = cudaMemcpyDeviceToHost;
    w.bytes = SMALL;
    say("host_copy_us", in_a_row(&w, MANY) * 1e6, "8 B to pinned memory");
    w.bytes = bytes;
    say("copy_host_GBs", rate((double)bytes, in_a_row(&w, 2)),
        "256 MiB to pinned memory, by all GPUs at the same time");
    CHECK_CUDA(cudaFreeHost(pinned));
    if (ndevices < 2)
        return;
    // From each GPU to the next one: through the host, and then directly.
    const int next = (rank + 1) % ndevices;
    void *there;
    CHECK_CUDA(cudaSetDevice(next));
    CHECK_CUDA(cudaMalloc(&there, bytes));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    w.to = there, w.kind = cudaMemcpyDefault;
    say("copy_staged_GBs", rate((double)bytes, in_a_row(&w, 1)),
        "256 MiB to the next GPU without peer access, by all at the same time");
    int can;
    CHECK_CUDA(cudaDeviceCanAccessPeer(&can, rank % ndevices, next));
    if (can) {
        CHECK_CUDA(cudaDeviceEnablePeerAccess(next, 0));
        say("copy_peer_GBs", rate((double)bytes, in_a_row(&w, 2)), "with peer access");
    }
    CHECK_CUDA(cudaFree(there));
}

static void time_computing(void) {
    struct work w = {.queue = queue_sum, .bytes = sizeof(float)};
    const double launch = in_a_row(&w, MANY);
    say("launch_us", launch * 1e6, "cublasSaxpy of one number, in a row");
    w.bytes = LARGEST;
    say("memory_GBs", rate(3.0 * LARGEST, in_a_row(&w, 4)), "cublasSaxpy of 256 MiB");
    w = (struct work){.queue = queue_product, .side = SIDE};
    const double side = SIDE, large = in_a_row(&w, 2);
    w.side = SIDE / 4;
    const double small = in_a_row(&w, 2 * BATCH), flops = 2 * side * side * side;
    say("float32_TFLOPS", flops / large / 1e12, "cublasSgemm of 4096 x 4096 x 4096");
    // That fills the GPU, and a small one doesn't.
    const double beyond = small - large / 64;
    say("product_us", beyond > 0 ? beyond * 1e6 : 0,
        "one of 1024 x 1024 x 1024: what it takes beyond a 64th of that");
    struct cudaDeviceProp properties;
    CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
    say("multiprocessors", properties.multiProcessorCount, "cudaGetDeviceProperties");
}

/* What the host spends on small things. */
static void time_host(void) {
    cudaEvent_t events[BATCH];
    for (int i = 0; i < BATCH; i++)
        CHECK_CUDA(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    struct work w = {.queue = queue_event, .to = events};
    say("event_us", on_the_host(&w) / 2 * 1e6, "recording an event, and waiting for it");
    for (int i = 0; i < BATCH; i++)
        CHECK_CUDA(cudaEventDestroy(events[i]));
    w = (struct work){.queue = queue_question};
    say("ask_us", on_the_host(&w) * 1e6, "cudaStreamQuery");
    w = (struct work){.queue = queue_message};
    if (nranks > 1)
        say("mpi_us", on_the_host(&w) / 2 * 1e6, "half of a ping-pong of 1 B");
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int ndevices, version;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    if (nranks < 2) {
        fprintf(stderr, "machine: one GPU is too few: mpirun -np 2 or more\n");
        MPI_Finalize();
        return 2;
    }
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, stream));

    ncclUniqueId id;
    struct call c = {.rank = rank, .nranks = nranks, .stream = stream};
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&c.comm, nranks, id, rank));
    struct call two = first_ranks(c.comm, 2, NULL);
    ncclWindow_t windows[2], windows_of_two[2] = {NULL, NULL};
    for (int b = 0; b < 2; b++) {
        CHECK_CUDA(cudaMalloc((void **)&plain[b], ROOM));
        CHECK_CUDA(cudaMemsetAsync(plain[b], 0, ROOM, stream));
        CHECK_NCCL(ncclMemAlloc((void **)&windowed[b], ROOM));
        CHECK_CUDA(cudaMemsetAsync(windowed[b], 0, ROOM, stream));
        CHECK_NCCL(ncclCommWindowRegister(c.comm, windowed[b], ROOM, &windows[b],
                                          NCCL_WIN_COLL_SYMMETRIC));
        if (two.comm)
            CHECK_NCCL(ncclCommWindowRegister(two.comm, windowed[b], ROOM,
                                              &windows_of_two[b],
                                              NCCL_WIN_COLL_SYMMETRIC));
    }

    struct cudaDeviceProp properties;
    CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
    CHECK_NCCL(ncclGetVersion(&version));
    if (rank == 0)
        printf(
            "# %s, %d of them, NCCL %d.%d.%d: what make measure PARTS=model measured.\n"
            "# What is not here was not, and is as there:\nas h200.conf\n\n",
            properties.name, nranks, version / 10000, version / 100 % 100, version % 100);
    struct work warm = work_of(&operations[ALL_REDUCE], &c, LARGEST, plain);
    in_a_row(&warm, BATCH);
    time_operations(&two);
    double link = time_registered(&two);
    if (nranks > 2) {
        time_operations(&c);
        const double more = time_registered(&c);
        link = more > link ? more : link;
    }
    if (rank == 0)
        printf("\n");
    time_ways();
    if (rank == 0)
        printf("\n");
    say("link_GBs", link / 1e9, "the fastest send with registered buffers");
    if (nranks == 4) {
        struct work w = work_of(&operations[ALL_REDUCE], &two, SMALL, plain);
        const double on_two = on_the_gpu(&w);
        w = work_of(&operations[ALL_REDUCE], &c, SMALL, plain);
        const double hop = (on_the_gpu(&w) - on_two) / 2;
        say("hop_us", hop > 0 ? hop * 1e6 : 0,
            "an all-reduce of 8 B in a graph on 4 ranks, two hops more than on 2");
    }
    time_launches(&two);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 4;
    struct call narrow = first_ranks(c.comm, 2, &config);
    const struct work w = work_of(&operations[ALL_REDUCE], &narrow, LARGEST, plain);
    say("nccl_cta_GBs", rate((double)w.bytes, in_a_row(&w, 2)) / 4,
        "an all-reduce of 256 MiB on 2 ranks with maxCTAs = 4");
#if HAS_PUT
    if (windows[0]) {
        const struct work put = {.queue = queue_put, .call = &c, .from = &windows[0]};
        say("one_sided_us", in_a_row(&put, BATCH) / 2 * 1e6,
            "a put with its signal, and a wait");
    }
#endif
    time_host();
    time_computing();
    time_copies(ndevices);

    if (narrow.comm)
        CHECK_NCCL(ncclCommDestroy(narrow.comm));
    for (int b = 1; b >= 0; b--) {
        if (windows_of_two[b])
            CHECK_NCCL(ncclCommWindowDeregister(two.comm, windows_of_two[b]));
        if (windows[b])
            CHECK_NCCL(ncclCommWindowDeregister(c.comm, windows[b]));
        CHECK_NCCL(ncclMemFree(windowed[b]));
        CHECK_CUDA(cudaFree(plain[b]));
    }
    if (two.comm)
        CHECK_NCCL(ncclCommDestroy(two.comm));
    CHECK_NCCL(ncclCommDestroy(c.comm));
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
