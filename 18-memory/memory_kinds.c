/*
 * Memory kinds: which memory NCCL may use, and what each kind costs.
 *
 *     mpirun -np 4 ./memory_kinds [-n COUNT] [--managed] [-h]
 *
 * Beside it, report.h has the options, the names of the kinds and the output.
 */
#include "clock.h"
#include "older.h"
#include "report.h"

enum { STEPS = 10 };

struct job {
    ncclComm_t comm;
    cudaStream_t stream, copying;
    size_t count, bytes; // of a buffer of floats
    float *pinned;       // where the data comes from: on the host
};

/* A buffer, and what NCCL gives back when it is registered. */
struct buffer {
    float *data;
    void *handle;        // of ncclCommRegister
    ncclWindow_t window; // of ncclCommWindowRegister
};

static struct buffer allocate(const struct job *job, enum kind kind) {
    struct buffer b = {0};
    void **data = (void **)&b.data;
    switch (kind) {
    case DEVICE: CHECK_CUDA(cudaMalloc(data, job->bytes)); break;
    // From a pool, in the order of the stream: whatever is queued there later may use it.
    case POOL: CHECK_CUDA(cudaMallocAsync(data, job->bytes, job->stream)); break;
    case PINNED: CHECK_CUDA(cudaHostAlloc(data, job->bytes, 0)); break;
    case MANAGED: CHECK_CUDA(cudaMallocManaged(data, job->bytes, 1)); break;
    default: CHECK_NCCL(ncclMemAlloc(data, job->bytes));
    }
    // Each rank registers for itself. A window is made by all ranks together, so that
    // each can reach the memory of all others.
    if (kind == REGISTERED)
        CHECK_NCCL(ncclCommRegister(job->comm, b.data, job->bytes, &b.handle));
    if (kind == WINDOW)
        CHECK_NCCL(ncclCommWindowRegister(job->comm, b.data, job->bytes, &b.window,
                                          NCCL_WIN_COLL_SYMMETRIC));
    return b;
}

/* Nothing may use the buffer any more, except memory of the pool: that is given back in
 * the order of the stream. */
static void release(const struct job *job, enum kind kind, struct buffer b) {
    if (b.window)
        CHECK_NCCL(ncclCommWindowDeregister(job->comm, b.window));
    if (b.handle)
        CHECK_NCCL(ncclCommDeregister(job->comm, b.handle));
    switch (kind) {
    case POOL: CHECK_CUDA(cudaFreeAsync(b.data, job->stream)); break;
    case PINNED: CHECK_CUDA(cudaFreeHost(b.data)); break;
    case DEVICE:
    case MANAGED: CHECK_CUDA(cudaFree(b.data)); break;
    default: CHECK_NCCL(ncclMemFree(b.data));
    }
}

/* What a loop pays that allocates and releases in every step: the mean, in seconds. */
static double time_allocation(const struct job *job, enum kind kind) {
    release(job, kind, allocate(job, kind)); // the first does not count
    const double began = MPI_Wtime();
    for (int i = 0; i < STEPS; i++)
        release(job, kind, allocate(job, kind));
    return (MPI_Wtime() - began) / STEPS;
}

/* Seconds for an all-reduce from one buffer of this kind into another. */
static double time_all_reduce(const struct job *job, enum kind kind) {
    struct stopwatch watch = {0};
    struct buffer send = allocate(job, kind), recv = allocate(job, kind);
    CHECK_CUDA(cudaMemcpyAsync(send.data, job->pinned, job->bytes, cudaMemcpyDefault,
                               job->stream));
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < STEPS; i++)
            CHECK_NCCL(ncclAllReduce(send.data, recv.data, job->count, ncclFloat32,
                                     ncclSum, job->comm, job->stream));
        CHECK_CUDA(cudaStreamSynchronize(job->stream));
        stopwatch_stop(&watch, STEPS);
    }
    report_check(recv.data, job->count);
    release(job, kind, recv);
    release(job, kind, send);
    return watch.seconds;
}

/* Seconds a batch: each is copied from the host into one of two buffers and summed there.
 * If `copying` is a stream of its own, the next batch is copied meanwhile. */
static double time_batches(const struct job *job, cudaStream_t copying) {
    struct stopwatch watch = {0};
    struct buffer buffers[2] = {allocate(job, DEVICE), allocate(job, DEVICE)};
    cudaEvent_t copied, summed[2];
    CHECK_CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaEventCreateWithFlags(&summed[b], cudaEventDisableTiming));
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < STEPS; i++) {
            float *data = buffers[i % 2].data;
            // The last sum in the buffer must be over. (Before the first one: no wait.)
            CHECK_CUDA(cudaStreamWaitEvent(copying, summed[i % 2], 0));
            CHECK_CUDA(cudaMemcpyAsync(data, job->pinned, job->bytes,
                                       cudaMemcpyHostToDevice, copying));
            CHECK_CUDA(cudaEventRecord(copied, copying));
            CHECK_CUDA(cudaStreamWaitEvent(job->stream, copied, 0));
            CHECK_NCCL(ncclAllReduce(data, data, job->count, ncclFloat32, ncclSum,
                                     job->comm, job->stream));
            CHECK_CUDA(cudaEventRecord(summed[i % 2], job->stream));
        }
        CHECK_CUDA(cudaStreamSynchronize(job->stream));
        stopwatch_stop(&watch, STEPS);
    }
    for (int b = 0; b < 2; b++) {
        CHECK_CUDA(cudaEventDestroy(summed[b]));
        release(job, DEVICE, buffers[b]);
    }
    CHECK_CUDA(cudaEventDestroy(copied));
    return watch.seconds;
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct job job = {.count = 0};
    const enum kind kinds = report_options(argc, argv, &job.count);
    job.bytes = job.count * sizeof(float);
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();
    lesson_need_memory(2 * job.bytes);

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&job.comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&job.stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&job.copying, cudaStreamNonBlocking));
    CHECK_CUDA(cudaHostAlloc((void **)&job.pinned, job.bytes, 0));
    for (size_t i = 0; i < job.count; i++)
        job.pinned[i] = (float)(rank + 1 + (int)(i % 100));

    report_head();
    for (enum kind kind = 0; kind < kinds; kind++) {
        const double summing = time_all_reduce(&job, kind);
        report_row(kind, time_allocation(&job, kind), summing, job.bytes);
    }
    const double in_turn = time_batches(&job, job.stream);
    report_batches(in_turn, time_batches(&job, job.copying));
    const int exit_code = lesson_verdict("element");

    CHECK_CUDA(cudaFreeHost(job.pinned));
    CHECK_CUDA(cudaStreamDestroy(job.copying));
    CHECK_CUDA(cudaStreamDestroy(job.stream));
    CHECK_NCCL(ncclCommDestroy(job.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
