/*
 * Pipelined ring: while one piece of a chunk is added, the others travel.
 *
 *     mpirun -np 4 ./pipelined_ring [-n COUNT] [--pieces P] [--time] [-h]
 *
 * Beside it, report.h has the options, the numbers that are added, and what is printed.
 */
#include "clock.h"
#include "older.h"
#include "report.h"

#include <cublas_v2.h>

enum { LANES = 4, PIECES = 16 }; // PIECES: at most

/* One way round the ring. Operations on one communicator run one after the other, in
 * whichever streams they are; operations on different communicators can run together. */
struct lane {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t received, done;
    void *registered[2];
};

struct ring {
    int rank, nranks;
    size_t count, pieces; // elements of a buffer; pieces of a chunk
    float *mine, *sum;    // on the GPU: this rank's numbers, and the sum
    ncclComm_t comm;
    cudaStream_t stream; // to the caller, the ring is one operation of this stream
    struct lane lanes[LANES];
    cudaStream_t adding; // the additions of all lanes
    cublasHandle_t blas; // works in `adding`
    cudaEvent_t begin, added[PIECES];
};

/* A range of elements of a buffer. */
struct part {
    size_t first, count;
};

/* One piece of a chunk. Chunks are counted round the ring, so -1 is the last. Large
 * pieces begin at multiples of 128 bytes (a grain), because NCCL and cuBLAS are much
 * slower elsewhere. Piece sizes differ by at most a grain, and a piece may be empty. */
static struct part part_of(const struct ring *r, int index, size_t piece) {
    const size_t n = (size_t)r->nranks * r->pieces;
    const size_t i = (size_t)((index + 2 * r->nranks) % r->nranks) * r->pieces + piece;
    const size_t grain = r->count / n < 1024 ? 1 : 128 / sizeof(float);
    const size_t grains = r->count / grain, first = grains * i / n * grain;
    const size_t next = i + 1 == n ? r->count : grains * (i + 1) / n * grain;
    return (struct part){first, next - first};
}

/* Queues one step of the ring for one piece. */
static void queue_step(struct ring *r, int step, size_t piece) {
    const int n = r->nranks, next = (r->rank + 1) % n, previous = (r->rank + n - 1) % n;
    const struct lane *lane = &r->lanes[piece % LANES];
    const struct part out = part_of(r, r->rank - step, piece);
    const struct part in = part_of(r, r->rank - step - 1, piece);
    const float *from = (step == 0 ? r->mine : r->sum) + out.first;
    float *to = r->sum + in.first;

    // What goes out is added by the previous step, in another stream: wait for that.
    CHECK_CUDA(cudaStreamWaitEvent(lane->stream, r->added[piece], 0));
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(from, out.count, ncclFloat32, next, lane->comm, lane->stream));
    CHECK_NCCL(ncclRecv(to, in.count, ncclFloat32, previous, lane->comm, lane->stream));
    CHECK_NCCL(ncclGroupEnd());
    if (step >= n - 1) // the second round only passes sums on
        return;

    // What came in is added in a separate stream, so the lane is free meanwhile.
    const float one = 1;
    CHECK_CUDA(cudaEventRecord(lane->received, lane->stream));
    CHECK_CUDA(cudaStreamWaitEvent(r->adding, lane->received, 0));
    CHECK_CUBLAS(
        cublasSaxpy_64(r->blas, (int64_t)in.count, &one, r->mine + in.first, 1, to, 1));
    CHECK_CUDA(cudaEventRecord(r->added[piece], r->adding));
}

/* Queues all steps of all pieces. The host waits for nothing. */
static void queue_ring(struct ring *r) {
    // The lanes start when r->stream gets here: then the numbers are in the buffers.
    CHECK_CUDA(cudaEventRecord(r->begin, r->stream));
    for (int l = 0; l < LANES; l++)
        CHECK_CUDA(cudaStreamWaitEvent(r->lanes[l].stream, r->begin, 0));

    for (int step = 0; step < 2 * (r->nranks - 1); step++)
        for (size_t piece = 0; piece < r->pieces; piece++)
            queue_step(r, step, piece);

    // r->stream continues when all lanes have got here.
    for (int l = 0; l < LANES; l++) {
        CHECK_CUDA(cudaEventRecord(r->lanes[l].done, r->lanes[l].stream));
        CHECK_CUDA(cudaStreamWaitEvent(r->stream, r->lanes[l].done, 0));
    }
}

/* Makes a communicator, a stream and events for each lane, and the stream that adds. */
static void make_lanes(struct ring *r) {
    // An operation holds up to maxCTAs multiprocessors of the GPU until it is done. All
    // lanes must fit on the GPU at the same time, or two ranks could run different lanes
    // and wait for each other for ever. So each lane gets a fifth of the multiprocessors,
    // the same number on all ranks, and the additions get the last fifth.
    int ctas, device;
    CHECK_CUDA(cudaGetDevice(&device));
    CHECK_CUDA(cudaDeviceGetAttribute(&ctas, cudaDevAttrMultiProcessorCount, device));
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &ctas, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = ctas > LANES + 1 ? ctas / (LANES + 1) : 1;
    for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++) {
        // A new communicator with the same ranks in the same order.
        CHECK_NCCL(ncclCommSplit(r->comm, 0, r->rank, &lane->comm, &config));
        // High priority (-5): transfers must not wait for an addition that fills the GPU.
        CHECK_CUDA(
            cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, -5));
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->received, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&lane->done, cudaEventDisableTiming));
    }
    CHECK_CUDA(cudaStreamCreateWithFlags(&r->adding, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&r->blas));
    CHECK_CUBLAS(cublasSetStream(r->blas, r->adding));
    CHECK_CUDA(cudaEventCreateWithFlags(&r->begin, cudaEventDisableTiming));
    for (size_t p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventCreateWithFlags(&r->added[p], cudaEventDisableTiming));
}

/* In the reverse order of making them. */
static void free_lanes(struct ring *r) {
    for (size_t p = 0; p < r->pieces; p++)
        CHECK_CUDA(cudaEventDestroy(r->added[p]));
    CHECK_CUDA(cudaEventDestroy(r->begin));
    CHECK_CUBLAS(cublasDestroy(r->blas));
    CHECK_CUDA(cudaStreamDestroy(r->adding));
    for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++) {
        CHECK_CUDA(cudaEventDestroy(lane->done));
        CHECK_CUDA(cudaEventDestroy(lane->received));
        CHECK_CUDA(cudaStreamDestroy(lane->stream));
        CHECK_NCCL(ncclCommDestroy(lane->comm));
    }
}

/* Memory from NCCL for this rank's numbers and the sum, registered with every lane: a
 * message then goes straight from one GPU's buffer into the next GPU's (lesson 18). */
static void make_buffers(struct ring *r) {
    float **buffers[2] = {&r->mine, &r->sum};
    const size_t bytes = r->count * sizeof(float);
    for (int b = 0; b < 2; b++) {
        CHECK_NCCL(ncclMemAlloc((void **)buffers[b], bytes));
        for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++)
            CHECK_NCCL(
                ncclCommRegister(lane->comm, *buffers[b], bytes, &lane->registered[b]));
    }
}

static void free_buffers(struct ring *r) {
    for (int b = 1; b >= 0; b--) {
        for (struct lane *lane = r->lanes; lane < r->lanes + LANES; lane++)
            CHECK_NCCL(ncclCommDeregister(lane->comm, lane->registered[b]));
        CHECK_NCCL(ncclMemFree(b == 0 ? r->mine : r->sum));
    }
}

/* Queues NCCL's all-reduce of the same numbers. */
static void queue_nccl(struct ring *r) {
    CHECK_NCCL(ncclAllReduce(r->mine, r->sum, r->count, ncclFloat32, ncclSum, r->comm,
                             r->stream));
}

/* Seconds of one all-reduce, of which up to 20 are queued one after the other and waited
 * for once, as in lesson 06. */
static double seconds_of(void (*queue)(struct ring *r), struct ring *r) {
    struct stopwatch warm = {0}, watch = {0};
    stopwatch_start(&warm);
    queue(r);
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    stopwatch_stop(&warm, 1);
    const double fit = 0.02 / warm.seconds; // so many take 20 ms
    const int repeat = fit < 1 ? 1 : fit < 20 ? (int)fit : 20;
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < repeat; i++)
            queue(r);
        CHECK_CUDA(cudaStreamSynchronize(r->stream));
        stopwatch_stop(&watch, repeat);
    }
    return watch.seconds;
}

/* Times the ring and NCCL's all-reduce, and prints both. */
static void measure(struct ring *r) {
    queue_nccl(r); // not timed: in the first call NCCL also connects the ranks
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    const double ring = seconds_of(queue_ring, r), nccl = seconds_of(queue_nccl, r);
    report_times(r->count * sizeof(float), r->pieces, ring, nccl);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct ring r = {0};
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &r.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &r.nranks));
    bool timed = false;
    report_options(argc, argv, &r.count, &r.pieces, PIECES, &timed);
    const size_t bytes = r.count * sizeof(float);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(r.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (r.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&r.comm, r.nranks, id, r.rank));
    CHECK_CUDA(cudaStreamCreateWithPriority(&r.stream, cudaStreamNonBlocking, -5));
    make_lanes(&r);

    // This rank's numbers are on the host, and twice on the GPU.
    lesson_need_memory(2 * bytes);
    float *host = lesson_malloc(bytes);
    for (size_t i = 0; i < r.count; i++)
        host[i] = value(r.rank, i);
    if (!timed)
        lesson_table("Before ring all-reduce:", host, r.count, ncclFloat32);
    make_buffers(&r);
    CHECK_CUDA(cudaMemcpyAsync(r.mine, host, bytes, cudaMemcpyHostToDevice, r.stream));
    CHECK_CUDA(cudaMemcpyAsync(r.sum, host, bytes, cudaMemcpyHostToDevice, r.stream));

    // The ring queues all of its work. Then the host waits once.
    queue_ring(&r);
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    check(timed ? NULL : "After ring all-reduce:", r.sum, host, r.count);
    if (timed)
        measure(&r);
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free_buffers(&r);
    free(host);
    free_lanes(&r);
    CHECK_CUDA(cudaStreamDestroy(r.stream));
    CHECK_NCCL(ncclCommDestroy(r.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
