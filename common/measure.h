/*
 * measure.h: what the lessons that measure need besides lesson.h.
 *
 * Options, the clock, medians, the fit of a line, the rows and the CSV file. The calls
 * that are measured stand in the lesson: here is when they are called, and how often.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "lesson.h"

#include <math.h>

/* User buffer registration, since NCCL 2.19. */
#define MEASURE_CAN_REGISTER (NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1))

/* --- The clock -------------------------------------------------------------------- */

/* A batch is some operations queued one behind the other and waited for once: the time of
 * one is the batch's, divided. It is the slowest rank's, because a collective is over
 * when it is over everywhere. What counts is the median of the batches. */
enum {
    MEASURE_REPEAT = 20,   // operations in a batch, at most
    MEASURE_BATCHES = 200, // batches, at most
    MEASURE_ENOUGH = 5,    // and at least
    MEASURE_LISTED = 64,
};
static const double measure_batch_seconds = 0.02; // no operation is added beyond these
static const double measure_least_seconds = 0.01; // a median has at least so many in it
static const double measure_total_seconds = 0.03; // no batch is added beyond these
static const double measure_stable = 0.02; // half of the batches lie this close together

struct measure {
    bool once;      // one operation, no clock
    bool graph;     // the batch becomes a CUDA graph
    double warm;    // seconds of operations before those that count, at least
    double seconds; // of one operation, when measure_again has returned false
    int repeat;     // operations in this batch
    int turn;       // how many of them are queued
    int queued;     // operations queued since the beginning
    enum {
        MEASURE_IDLE,
        MEASURE_FIRST,
        MEASURE_SECOND,
        MEASURE_CAPTURE,
        MEASURE_TIMED
    } now;
    double start, spent;
    int nbatches;
    double batches[MEASURE_BATCHES];
};

LESSON_FUNCTION int measure_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which `part` (0.5: the median) of the n values lie; sorts them. */
LESSON_FUNCTION double measure_quantile(double *values, int n, double part) {
    qsort(values, (size_t)n, sizeof *values, measure_compare);
    double at = part * (n - 1);
    int below = (int)at;
    return below + 1 < n
               ? values[below] + (at - below) * (values[below + 1] - values[below])
               : values[n - 1];
}

LESSON_FUNCTION double measure_slowest(double seconds) {
    double slowest;
    CHECK_MPI(MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    return slowest;
}

/* Starts a batch on all ranks at the same moment. */
LESSON_FUNCTION void measure_start(struct measure *m) {
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    m->turn = 0;
    m->start = MPI_Wtime();
}

/* Ends it; returns the time of one operation, the same on every rank. */
LESSON_FUNCTION double measure_stop(struct measure *m, cudaStream_t stream) {
    CHECK_CUDA(cudaStreamSynchronize(stream));
    double batch = measure_slowest(MPI_Wtime() - m->start);
    m->spent += batch;
    return batch / m->repeat;
}

/* Notes a batch; true if the median is settled. Every rank decides the same. */
LESSON_FUNCTION bool measure_settled(struct measure *m, double seconds) {
    m->batches[m->nbatches++] = seconds;
    double low = measure_quantile(m->batches, m->nbatches, 0.25);
    double high = measure_quantile(m->batches, m->nbatches, 0.75);
    m->seconds = measure_quantile(m->batches, m->nbatches, 0.5);
    return m->nbatches == MEASURE_BATCHES ||
           (m->nbatches >= MEASURE_ENOUGH && m->spent > measure_least_seconds &&
            (high - low <= measure_stable * m->seconds ||
             m->spent > measure_total_seconds));
}

/* A captured batch: launched as a whole, as often as its median needs. */
LESSON_FUNCTION void measure_launches(struct measure *m, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t batch;
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&batch, graph, 0));
    CHECK_CUDA(cudaGraphLaunch(batch, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    do {
        measure_start(m);
        CHECK_CUDA(cudaGraphLaunch(batch, stream));
    } while (!measure_settled(m, measure_stop(m, stream)));
    CHECK_CUDA(cudaGraphExecDestroy(batch));
    CHECK_CUDA(cudaGraphDestroy(graph));
}

/* Asks for an operation on `stream`, again and again:
 *     while (measure_again(&m, stream))
 *         queue one operation
 * When it returns false, the operations are done and m.seconds is the time of one. The
 * first ones are not counted: they make connections, say how many fit a batch, and bring
 * what has idled up to speed. */
LESSON_FUNCTION bool measure_again(struct measure *m, cudaStream_t stream) {
    if (m->now == MEASURE_IDLE) {
        m->nbatches = m->queued = 0;
        m->spent = 0;
        m->repeat = 1;
        m->now = MEASURE_FIRST;
        measure_start(m);
        return true;
    }
    m->queued++;
    if (++m->turn < m->repeat)
        return true;
    if (m->now == MEASURE_CAPTURE) {
        measure_launches(m, stream);
        m->now = MEASURE_IDLE;
        return false;
    }
    double seconds = measure_stop(m, stream);
    if (m->once || (m->now == MEASURE_TIMED && measure_settled(m, seconds))) {
        m->now = MEASURE_IDLE;
        return false;
    }
    const bool warming = m->now == MEASURE_SECOND && m->spent < m->warm;
    if (m->now != MEASURE_TIMED && !warming) {
        double fit = measure_batch_seconds / (seconds > 0 ? seconds : 1e-9);
        m->repeat = fit < 1 ? 1 : fit > MEASURE_REPEAT ? MEASURE_REPEAT : (int)fit;
        m->now = m->now == MEASURE_FIRST ? MEASURE_SECOND
                 : m->graph              ? MEASURE_CAPTURE
                                         : MEASURE_TIMED;
        m->spent = 0;
    }
    measure_start(m);
    if (m->now == MEASURE_CAPTURE)
        CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    return true;
}

/* --- The law ---------------------------------------------------------------------- */

/* T = alpha + n / beta. */
struct measure_law {
    bool fits;    // the sizes show both a latency and a bandwidth
    double alpha; // seconds
    double beta;  // bytes per second
    double rms;   // deviation of the line from a row, as a part of the row's time
    double worst; // the largest of them
    double at;    // and the size it is at
};

/* Least squares over n rows. What is made small is the relative error: else the gigabytes
 * would decide alone, and the bytes, which know the latency, would count for nothing. */
LESSON_FUNCTION struct measure_law measure_fit(const double *sizes, const double *seconds,
                                               int n) {
    struct measure_law law = {0};
    double w = 0, x = 0, xx = 0, y = 0, xy = 0;
    for (int i = 0; i < n; i++) {
        double weight = 1 / (seconds[i] * seconds[i]);
        w += weight;
        x += weight * sizes[i];
        xx += weight * sizes[i] * sizes[i];
        y += weight * seconds[i];
        xy += weight * sizes[i] * seconds[i];
    }
    double divisor = w * xx - x * x;
    if (n < 2 || divisor <= 0)
        return law;
    double slope = (w * xy - x * y) / divisor;
    law.alpha = (y - slope * x) / w;
    if (law.alpha < 0) { // no latency to be seen: the best line through nothing
        law.alpha = 0;
        slope = xy / xx;
    }
    law.fits = slope > 0;
    law.beta = law.fits ? 1 / slope : INFINITY;
    for (int i = 0; i < n; i++) {
        double off = fabs((law.alpha + slope * sizes[i]) / seconds[i] - 1);
        law.rms += off * off / n;
        if (off >= law.worst) {
            law.worst = off;
            law.at = sizes[i];
        }
    }
    law.rms = sqrt(law.rms);
    return law;
}

/* --- 05-ring-allreduce ------------------------------------------------------------ */

enum { RING_PIECES = 16, RING_LANES = 4 };

/* One of the ways round the ring. A communicator's operations wait for one another; those
 * of several go on at the same time. */
struct lane {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t received, done;
    void *registered[2];
};

struct ring {
    int rank, nranks, next, previous;
    size_t count, bytes; // of a rank's buffer
    float *mine, *sum;   // on the GPU: what this rank brings, and what becomes the sum
    ncclComm_t comm;
    cudaStream_t stream;
    struct lane lanes[RING_LANES]; // plain: the first one, with comm and stream
    cudaStream_t adding;           // plain: stream
    cudaEvent_t begin, added[RING_PIECES];
    bool timed, pipelined;
    int pieces;  // of a chunk; plain: 1
    size_t sent; // bytes, counted by the lesson
    struct measure ring, nccl;
};

/* A part of the buffers, `count` elements, in r->mine and in r->sum. */
struct chunk {
    float *mine, *sum;
    size_t count;
};

/* A piece of chunk number `index`, counted round the ring: -1 is the last. Chunks differ
 * by one element at most, and may be empty; so may pieces. Large ones begin at multiples
 * of 128 bytes, because NCCL and cuBLAS are slower anywhere else; they differ by that. */
LESSON_FUNCTION struct chunk ring_chunk(const struct ring *r, int index, int piece) {
    const size_t n = (size_t)r->nranks * (size_t)r->pieces;
    const size_t part =
        (size_t)((index + 2 * r->nranks) % r->nranks) * (size_t)r->pieces + (size_t)piece;
    const size_t grain = r->count / n < 1024 ? 1 : 128 / sizeof(float);
    const size_t grains = r->count / grain, from = grains * part / n * grain;
    const size_t to = part + 1 == n ? r->count : grains * (part + 1) / n * grain;
    return (struct chunk){r->mine + from, r->sum + from, to - from};
}

LESSON_FUNCTION struct ring ring_options(int argc, char **argv, int rank, int nranks) {
    struct ring r = {.rank = rank, .nranks = nranks};
    size_t pieces = 0;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements per rank, at least 1", .number = &r.count,
         .usual = (size_t)nranks, .least = 1},
        {"--time", NULL, "no tables, but times, and the bytes that a rank sends",
         .flag = &r.timed},
        {"--pipelined", NULL, "adds one piece of a chunk while others travel",
         .flag = &r.pipelined},
        {"--pieces", "P", "pipelined, in P pieces a chunk instead of 4",
         .number = &pieces, .least = 1, .most = RING_PIECES},
        {0}};
    lesson_options(argc, argv, options);
    r.pipelined |= pieces > 0;
    r.pieces = pieces ? (int)pieces : r.pipelined ? 4 : 1;
    r.bytes = r.count * sizeof(float);
    r.next = (rank + 1) % nranks;
    r.previous = (rank + nranks - 1) % nranks;
    r.ring.once = r.nccl.once = !r.timed;
    return r;
}

/* The lanes; if pipelined, with a communicator and a stream each, a stream that adds, and
 * the events. */
LESSON_FUNCTION void ring_pipe(struct ring *r) {
    r->lanes[0].comm = r->comm;
    r->lanes[0].stream = r->adding = r->stream;
    if (!r->pipelined)
        return;
    // An operation holds up to maxCTAs multiprocessors until it is done. Those of all
    // lanes must find room at the same time, or they could wait for each other's for
    // ever: "Using multiple NCCL communicators concurrently" in NCCL's manual. So each
    // lane gets a part, as large on all ranks, and the additions get one.
    int device, part;
    CHECK_CUDA(cudaGetDevice(&device));
    CHECK_CUDA(cudaDeviceGetAttribute(&part, cudaDevAttrMultiProcessorCount, device));
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &part, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    part /= RING_LANES + 1;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = part > 1 ? part : 1;
    for (struct lane *lane = r->lanes; lane < r->lanes + RING_LANES; lane++) {
        CHECK_NCCL(ncclCommSplit(r->comm, 0, r->rank, &lane->comm, &config));
        CHECK_CUDA(
            cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, -5));
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->received, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->done, cudaEventDisableTiming));
    }
    CHECK_CUDA(cudaStreamCreateWithFlags(&r->adding, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&r->begin, cudaEventDisableTiming));
    for (int p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventCreateWithFlags(&r->added[p], cudaEventDisableTiming));
}

LESSON_FUNCTION void ring_pipe_destroy(struct ring *r) {
    if (!r->pipelined)
        return;
    for (int p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventDestroy(r->added[p]));
    CHECK_CUDA(cudaEventDestroy(r->begin));
    CHECK_CUDA(cudaStreamDestroy(r->adding));
    for (struct lane *lane = r->lanes; lane < r->lanes + RING_LANES; lane++) {
        CHECK_CUDA(cudaEventDestroy(lane->done));
        CHECK_CUDA(cudaEventDestroy(lane->received));
        CHECK_CUDA(cudaStreamDestroy(lane->stream));
        CHECK_NCCL(ncclCommDestroy(lane->comm));
    }
}

/* The lanes begin when r->stream has come this far. */
LESSON_FUNCTION void ring_fork(struct ring *r) {
    CHECK_CUDA(cudaEventRecord(r->begin, r->stream));
    for (int i = 0; i < RING_LANES; i++)
        CHECK_CUDA(cudaStreamWaitEvent(r->lanes[i].stream, r->begin, 0));
}

/* r->stream goes on when the lanes have come this far. */
LESSON_FUNCTION void ring_join(struct ring *r) {
    for (int i = 0; i < RING_LANES; i++) {
        CHECK_CUDA(cudaEventRecord(r->lanes[i].done, r->lanes[i].stream));
        CHECK_CUDA(cudaStreamWaitEvent(r->stream, r->lanes[i].done, 0));
    }
}

/* GPU memory for r->mine and r->sum. If pipelined it is NCCL's own and registered in
 * every lane, so that a message goes straight from one buffer into the other: "User
 * Buffer Registration" in NCCL's manual. */
LESSON_FUNCTION void ring_malloc(struct ring *r) {
    float **buffers[2] = {&r->mine, &r->sum};
    for (int b = 0; b < 2; b++) {
#if MEASURE_CAN_REGISTER
        if (r->pipelined) {
            CHECK_NCCL(ncclMemAlloc((void **)buffers[b], r->bytes));
            for (int i = 0; i < RING_LANES; i++)
                CHECK_NCCL(ncclCommRegister(r->lanes[i].comm, *buffers[b], r->bytes,
                                            &r->lanes[i].registered[b]));
            continue;
        }
#endif
        CHECK_CUDA(cudaMalloc((void **)buffers[b], r->bytes));
    }
}

LESSON_FUNCTION void ring_free(struct ring *r) {
    float *buffers[2] = {r->mine, r->sum};
    for (int b = 1; b >= 0; b--) {
#if MEASURE_CAN_REGISTER
        if (r->pipelined) {
            for (int i = 0; i < RING_LANES; i++)
                CHECK_NCCL(
                    ncclCommDeregister(r->lanes[i].comm, r->lanes[i].registered[b]));
            CHECK_NCCL(ncclMemFree(buffers[b]));
            continue;
        }
#endif
        CHECK_CUDA(cudaFree(buffers[b]));
    }
}

/* Element i of what `rank` brings: one digit, at the rank's place in a decimal number.
 * Six places, so that the sum over 64 ranks is still exact in a float. */
LESSON_FUNCTION float ring_value(int rank, size_t i) {
    const float place[] = {1, 10, 100, 1000, 10000, 100000};
    return place[rank % 6] * (float)(1 + i % 9);
}

/* Host memory for two buffers, to be given to free(); the first holds what this rank
 * brings, which is shown. */
LESSON_FUNCTION float *ring_before(const struct ring *r) {
    lesson_need_memory(2 * r->bytes);
    float *host = lesson_malloc(2 * r->bytes);
    for (size_t i = 0; i < r->count; i++)
        host[i] = ring_value(r->rank, i);
    if (!r->timed)
        lesson_table("Before ring all-reduce:", host, r->count, ncclFloat32);
    return host;
}

/* Shows r->sum after a step, unless timed. */
LESSON_FUNCTION void ring_show(const struct ring *r, int step) {
    if (r->timed)
        return;
    char title[64];
    snprintf(title, sizeof title, "After step %d of %d, %s:", step + 1,
             2 * (r->nranks - 1), step < r->nranks - 1 ? "added up" : "passed on");
    float *host = lesson_malloc(r->bytes);
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    CHECK_CUDA(cudaMemcpy(host, r->sum, r->bytes, cudaMemcpyDeviceToHost));
    lesson_table(title, host, r->count, ncclFloat32);
    free(host);
}

/* One line of the report; the bus bandwidth is 0 for a single rank. */
LESSON_FUNCTION void ring_line(const struct ring *r, const char *name, double seconds) {
    double factor = 2.0 * (r->nranks - 1) / r->nranks;
    printf("%-18s %.3f ms, bus bandwidth %.2f GB/s\n", name, seconds * 1e3,
           factor * (double)r->bytes / seconds / 1e9);
}

/* Compares the ring's result with NCCL's and both with the sum, reports the times, and
 * prints the verdict. Returns the exit code. */
LESSON_FUNCTION int ring_verdict(const struct ring *r, const float *ring,
                                 const float *nccl) {
    double ones = 0, sent = (double)r->sent / r->ring.queued, least, most;
    for (int rank = 0; rank < r->nranks; rank++)
        ones += (double)ring_value(rank, 0);
    for (size_t i = 0; i < r->count; i++) {
        lesson_expect(i, (double)ring[i], (double)nccl[i]);
        lesson_expect(i, (double)nccl[i], ones * (double)(1 + i % 9));
    }
    if (!r->timed && (r->pipelined || r->nranks == 1))
        lesson_table("After ring all-reduce:", ring, r->count, ncclFloat32);
    if (!r->timed) {
        lesson_table("After ncclAllReduce:", nccl, r->count, ncclFloat32);
        return lesson_verdict("element");
    }
    CHECK_MPI(MPI_Allreduce(&sent, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Allreduce(&sent, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    if (r->rank == 0) {
        char name[64] = "ring, plain";
        if (r->pipelined)
            snprintf(name, sizeof name, "ring, in %d piece%s", r->pieces,
                     r->pieces == 1 ? "" : "s");
        printf("%d rank%s, D = %zu bytes\n%-18s %.0f", r->nranks,
               r->nranks == 1 ? "" : "s", r->bytes, "a rank sends", least);
        if (most > least)
            printf(" to %.0f", most);
        double formula = 2.0 * (r->nranks - 1) / r->nranks * (double)r->bytes;
        printf(" bytes, counted; 2(N-1)/N x D = %.*f\n", fmod(formula, 1) != 0, formula);
        ring_line(r, name, r->ring.seconds);
        ring_line(r, "ncclAllReduce", r->nccl.seconds);
        if (r->nranks > 1)
            printf("%-18s %.3f of ncclAllReduce's bandwidth\n", "ratio",
                   r->nccl.seconds / r->ring.seconds);
        fflush(stdout);
    }
    return lesson_verdict("element");
}

/* --- 06-bandwidth ----------------------------------------------------------------- */

/* One of the lesson's operations. */
struct operation {
    const char *name;
    double factor; // from algorithm to bus bandwidth
    bool parts;    // every rank has a part of the buffer, so n must divide it
};

enum { BANDWIDTH_OPERATIONS = 8 };

struct bandwidth {
    int rank, nranks, next, previous;
    size_t bytes, count; // of the size at hand
    size_t room;         // bytes of each buffer
    struct measure time;
    // asked for
    size_t min, max, factor;
    bool chosen[BANDWIDTH_OPERATIONS], registered;
    FILE *csv;
    // the operation at hand
    const struct operation *operation;
    size_t asked; // bytes, before they were made divisible; 0: none yet
    int nrows;
    double sizes[MEASURE_LISTED], seconds[MEASURE_LISTED];
    bool headed;
    struct {
        void *buffer, *handle;
    } registrations[2];
    float *host; // as large as a buffer: what is filled in and what is checked
};

/* The CPU build carries bytes much slower: its default ends sooner. GPUs that have idled,
 * because the last result was checked, need a moment. */
#ifdef CUDA_RUNTIME_H_CPU
enum { BANDWIDTH_MAX = 64 << 10 };
static const double bandwidth_warm = 0;
#else
enum { BANDWIDTH_MAX = 1 << 30 };
static const double bandwidth_warm = 0.3;
#endif

#define BANDWIDTH_CAN_WINDOW (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3))

LESSON_FUNCTION struct bandwidth bandwidth_options(int argc, char **argv, int rank,
                                                   int nranks,
                                                   const struct operation *operations) {
    struct bandwidth b = {.rank = rank, .nranks = nranks};
    const char *csv = NULL, *names[BANDWIDTH_OPERATIONS + 1] = {0};
    for (int i = 0; operations[i].name; i++)
        names[i] = operations[i].name;
    const struct lesson_option options[] = {
        {"--op", "NAMES", "only these, with commas between:", .names = names,
         .chosen = b.chosen},
        {"--min", "BYTES", "smallest size; K, M and G may follow the number",
         .number = &b.min, .usual = 8, .least = 4},
        {"--max", "BYTES", "largest size", .number = &b.max, .usual = BANDWIDTH_MAX,
         .least = 4},
        {"--factor", "F", "from one size to the next", .number = &b.factor, .usual = 2,
         .least = 2},
        {"--csv", "FILE", "writes the numbers there too; make plot draws them",
         .text = &csv},
        {"--register", NULL, "registers the buffers with NCCL", .flag = &b.registered},
        {"--graph", NULL, "launches each batch as a CUDA graph", .flag = &b.time.graph},
        {0}};
    lesson_options(argc, argv, options);
    if (b.min > b.max)
        lesson_misused(argv[0], options, "--min is larger than --max");
    if (b.registered && !MEASURE_CAN_REGISTER)
        lesson_misused(argv[0], options, "--register needs NCCL 2.19 or newer");
    bool any = false;
    for (int i = 0; names[i]; i++)
        any |= b.chosen[i];
    for (int i = 0; names[i] && !any; i++)
        b.chosen[i] = true;
    b.next = (rank + 1) % nranks;
    b.previous = (rank + nranks - 1) % nranks;
    if (csv && rank == 0) {
        b.csv = fopen(csv, "w");
        if (!b.csv)
            lesson_fail("cannot write %s: %s", csv, strerror(errno));
        fprintf(b.csv, "operation,mode,ranks,bytes,time_us,algbw_GB_per_s,busbw_GB_per_s,"
                       "repeats\n");
    }
    return b;
}

/* GPU memory for the largest size of which two fit, on every rank; registered if asked.
 * Given back by bandwidth_free. */
LESSON_FUNCTION float *bandwidth_buffer(struct bandwidth *b, ncclComm_t comm) {
    if (!b->room) {
        size_t available, total, sizes = 1;
        CHECK_CUDA(cudaMemGetInfo(&available, &total));
        // A tenth is left to NCCL, which takes its own buffers when it first needs them.
        double mine = (double)available * 0.45, room;
        if (mine > lesson_host_memory() / 2)
            mine = lesson_host_memory() / 2;
        CHECK_MPI(MPI_Allreduce(&mine, &room, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD));
        if ((double)b->min > room)
            lesson_fail("no size fits: --min is %zu bytes, and there is room for %.0f\n"
                        "  Hint: choose a smaller --min.",
                        b->min, room);
        for (b->room = b->min;
             b->room <= b->max / b->factor && (double)b->room * (double)b->factor <= room;
             sizes++)
            b->room *= b->factor;
        if (sizes > MEASURE_LISTED)
            lesson_fail("too many sizes");
    }
    void *buffer;
    int which = b->registrations[0].buffer != NULL;
#if MEASURE_CAN_REGISTER
    if (b->registered) {
        CHECK_NCCL(ncclMemAlloc(&buffer, b->room));
#if BANDWIDTH_CAN_WINDOW
        ncclWindow_t window;
        CHECK_NCCL(ncclCommWindowRegister(comm, buffer, b->room, &window,
                                          NCCL_WIN_COLL_SYMMETRIC));
        b->registrations[which].handle = window;
#else
        CHECK_NCCL(
            ncclCommRegister(comm, buffer, b->room, &b->registrations[which].handle));
#endif
        b->registrations[which].buffer = buffer;
        return buffer;
    }
#endif
    (void)comm;
    CHECK_CUDA(cudaMalloc(&buffer, b->room));
    b->registrations[which].buffer = buffer;
    return buffer;
}

LESSON_FUNCTION void bandwidth_free(struct bandwidth *b, ncclComm_t comm, float *buffer) {
    free(b->host);
    b->host = NULL;
    (void)b, (void)comm; // without registering neither is needed
#if MEASURE_CAN_REGISTER
    if (b->registered) {
        void *handle = b->registrations[b->registrations[1].buffer == buffer].handle;
#if BANDWIDTH_CAN_WINDOW
        if (handle) // NULL: NCCL had no use for it
            CHECK_NCCL(ncclCommWindowDeregister(comm, handle));
#else
        CHECK_NCCL(ncclCommDeregister(comm, handle));
#endif
        CHECK_NCCL(ncclMemFree(buffer));
        return;
    }
#endif
    CHECK_CUDA(cudaFree(buffer));
}

/* Element i of what `rank` brings: whole numbers, so that sums are exact. */
LESSON_FUNCTION float bandwidth_value(int rank, size_t i) {
    return (float)(rank + (int)(i % 64));
}

/* Fills the buffer with what this rank brings. */
LESSON_FUNCTION void bandwidth_fill(struct bandwidth *b, float *buffer,
                                    cudaStream_t stream) {
    b->host = lesson_malloc(b->room);
    for (size_t i = 0; i < b->room / sizeof *b->host; i++)
        b->host[i] = bandwidth_value(b->rank, i);
    CHECK_CUDA(cudaMemcpyAsync(buffer, b->host, b->room, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

/* The next size of this operation, into b->bytes and b->count; false after the last one,
 * or if the operation was not asked for. Says which sizes are left out. */
LESSON_FUNCTION bool bandwidth_size(struct bandwidth *b, const struct operation *all,
                                    int op) {
    if (!b->chosen[op])
        return false;
    if (b->operation != &all[op]) {
        b->operation = &all[op];
        b->asked = 0;
        b->nrows = 0;
        if (!b->headed && b->rank == 0)
            printf("%-15s %11s %12s %9s %9s\n%-15s %11s %13s %9s %9s\n", "operation",
                   "size", "time", "algbw", "busbw", "", "(B)", "(µs)", "(GB/s)",
                   "(GB/s)");
        b->headed = true;
    }
    // Every rank's part has whole elements.
    size_t grain = sizeof(float) * (all[op].parts ? (size_t)b->nranks : 1);
    do {
        if (b->asked > b->max / b->factor)
            return false;
        b->asked = b->asked ? b->asked * b->factor : b->min;
        if (b->asked > b->max)
            return false;
        b->bytes = b->asked / grain * grain;
        if (b->bytes == 0 && b->rank == 0)
            printf("%-15s %11zu  left out: less than one element for each of %d ranks\n",
                   all[op].name, b->asked, b->nranks);
    } while (b->bytes == 0);
    b->count = b->bytes / sizeof(float);
    b->time.warm = b->nrows == 0 ? bandwidth_warm : 0;
    if (b->asked > b->room) {
        if (b->rank == 0)
            printf("%-15s %11zu  left out, and all above: two such buffers do not fit the"
                   " memory\n",
                   all[op].name, b->asked);
        b->asked = b->max;
        return false;
    }
    return true;
}

/* Which elements of the buffers the next operation takes: each turn another part of them,
 * as nccl-tests does it, so that a cache does not answer for the link. */
LESSON_FUNCTION size_t bandwidth_part(const struct bandwidth *b) {
    size_t stride = (b->bytes + 511) / 512 * 512, parts = b->room / stride;
    return parts > 1 ? (size_t)b->time.turn % parts * (stride / sizeof(float)) : 0;
}

/* Waits, and compares the result of the operation at hand with what must come out. */
LESSON_FUNCTION void bandwidth_check(const struct bandwidth *b, const float *recvbuf,
                                     cudaStream_t stream) {
    const char *name = b->operation->name;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(b->host, recvbuf, b->bytes, cudaMemcpyDeviceToHost));
    size_t part = b->count / (size_t)b->nranks, mine = (size_t)b->rank * part;
    size_t length = b->count, first = 0;
    bool sum = strstr(name, "reduce") != NULL, gather = strcmp(name, "all_gather") == 0;
    bool all_to_all = strcmp(name, "all_to_all") == 0;
    int from = strcmp(name, "send_recv") == 0 ? b->previous : 0;
    if (strcmp(name, "reduce") == 0 && b->rank != 0)
        length = 0; // only the root has it
    if (strcmp(name, "reduce_scatter") == 0) {
        length = part;
        first = mine;
    }
    for (size_t i = 0; i < length; i++) {
        float expected;
        if (sum)
            expected = (float)b->nranks * bandwidth_value(0, first + i) +
                       (float)(b->nranks * (b->nranks - 1) / 2);
        else if (gather || all_to_all)
            expected =
                bandwidth_value((int)(i / part), (all_to_all ? mine : 0) + i % part);
        else
            expected = bandwidth_value(from, i);
        lesson_expect(i, (double)b->host[i], (double)expected);
    }
}

/* Prints the row of this size, and writes it to the CSV file. Bandwidths in bytes per
 * second. */
LESSON_FUNCTION void bandwidth_row(struct bandwidth *b, double algbw, double busbw) {
    const char *modes[] = {"plain", "graph", "register", "register+graph"};
    if (b->nrows < MEASURE_LISTED) {
        b->sizes[b->nrows] = (double)b->bytes;
        b->seconds[b->nrows++] = b->time.seconds;
    }
    if (b->rank != 0)
        return;
    printf("%-15s %11zu %12.2f %9.2f %9.2f\n", b->operation->name, b->bytes,
           b->time.seconds * 1e6, algbw / 1e9, busbw / 1e9);
    fflush(stdout);
    if (b->csv) {
        fprintf(b->csv, "%s,%s,%d,%zu,%.4f,%.6g,%.6g,%d\n", b->operation->name,
                modes[2 * b->registered + b->time.graph], b->nranks, b->bytes,
                b->time.seconds * 1e6, algbw / 1e9, busbw / 1e9, b->time.queued);
        fflush(b->csv);
    }
}

/* After an operation's last row: what the rows have in common. */
LESSON_FUNCTION void bandwidth_law(struct bandwidth *b, int op) {
    if (b->rank != 0 || !b->chosen[op] || b->nrows < 2)
        return;
    struct measure_law law = measure_fit(b->sizes, b->seconds, b->nrows);
    const int decimals = law.beta < 1e9 ? 4 : law.beta < 1e11 ? 1 : 0;
    if (law.fits)
        printf("  T = %.2f µs + n / %.*f GB/s, off by %.0f %% (rms), at most %.0f %% (at"
               " %.0f B);\n  from n = %.0f B on, bandwidth costs more than latency\n\n",
               law.alpha * 1e6, decimals, law.beta / 1e9, law.rms * 100, law.worst * 100,
               law.at, law.alpha * law.beta);
    else
        printf("  T = %.2f µs: these sizes show no bandwidth\n\n", law.alpha * 1e6);
    fflush(stdout);
}

#endif
