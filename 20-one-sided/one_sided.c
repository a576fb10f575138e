/*
 * One-sided: a rank writes into the memory of another and signals it.
 *
 *     mpirun -np 4 ./one_sided [-n COUNT] [--items N] [-h]
 *
 * Beside it, report.h has the options and the output.
 */
#include "clock.h"
#include "report.h"

enum { STEPS = 10, SLOTS = 4 };

/* A rank's part of the window, on its GPU: its own values, room for what the neighbours
 * put here, and the queue's slots. All are `count` floats. */
enum { MINE, FROM_LEFT, FROM_RIGHT = FROM_LEFT + 2, QUEUE = FROM_RIGHT + 2 };
enum { PARTS = QUEUE + SLOTS };

struct ranks {
    ncclComm_t comm;
    cudaStream_t stream;
    ncclWindow_t window;
    float *memory; // PARTS * count floats
    size_t count;
    int rank, left, right; // the ranks stand in a ring
};

static float *part(const struct ranks *r, int number) {
    return r->memory + (size_t)number * r->count;
}

static void put(const struct ranks *r, int peer, int number) {
    CHECK_NCCL(ncclPutSignal(part(r, MINE), r->count, ncclFloat32, peer, r->window,
                             (size_t)number * r->count * sizeof(float), 0, 0, 0, r->comm,
                             r->stream));
}

/* The stream goes on when `peer` has signalled once more than was waited for so far. */
static void wait_for(const struct ranks *r, int peer) {
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
    CHECK_NCCL(ncclWaitSignal(1, &one, r->comm, r->stream));
}

/* Each rank gives its values to both neighbours. It puts them into two places in turn. So
 * what a neighbour puts in the next step does not hit what this rank may still be
 * reading, and the step after that begins only when it has been read. */
static void exchange_by_put(const struct ranks *r, int step) {
    put(r, r->left, FROM_RIGHT + step % 2);
    put(r, r->right, FROM_LEFT + step % 2);
    wait_for(r, r->left);
    wait_for(r, r->right);
}

/* The same with both sides calling. */
static void exchange_by_send(const struct ranks *r, int step) {
    float *mine = part(r, MINE);
    float *left = part(r, FROM_LEFT + step % 2), *right = part(r, FROM_RIGHT + step % 2);
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, r->count, ncclFloat32, r->left, r->comm, r->stream));
    CHECK_NCCL(ncclSend(mine, r->count, ncclFloat32, r->right, r->comm, r->stream));
    CHECK_NCCL(ncclRecv(right, r->count, ncclFloat32, r->right, r->comm, r->stream));
    CHECK_NCCL(ncclRecv(left, r->count, ncclFloat32, r->left, r->comm, r->stream));
    CHECK_NCCL(ncclGroupEnd());
}

/* Times an exchange, checks what both neighbours' values are, and prints the time. */
static void halo(const struct ranks *r, const char *name,
                 void (*exchange)(const struct ranks *, int), float *host) {
    struct stopwatch watch = {0};
    CHECK_CUDA(cudaMemsetAsync(part(r, FROM_LEFT), 255, 4 * r->count * sizeof(float),
                               r->stream));
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int step = 0; step < STEPS; step++)
            exchange(r, step);
        CHECK_CUDA(cudaStreamSynchronize(r->stream));
        stopwatch_stop(&watch, STEPS);
    }
    CHECK_CUDA(cudaMemcpy(host, part(r, FROM_LEFT), 4 * r->count * sizeof(float),
                          cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 4 * r->count; i++)
        lesson_expect(i, (double)host[i], i < 2 * r->count ? r->left : r->right);
    report_exchange(name, watch.seconds);
}

/* Rank 0 puts item i into its slot of rank 1, once that is free again. */
static void give(const struct ranks *r, size_t i, float *host) {
    if (i >= SLOTS)
        wait_for(r, 1);
    for (size_t k = 0; k < r->count; k++)
        host[k] = (float)((i + k) % 1000);
    CHECK_CUDA(cudaMemcpyAsync(part(r, MINE), host, r->count * sizeof(float),
                               cudaMemcpyHostToDevice, r->stream));
    put(r, 1, QUEUE + (int)(i % SLOTS));
}

/* Rank 1 waits for item i, takes it, and signals that its slot is free again. */
static void take(const struct ranks *r, size_t i, float *host) {
    wait_for(r, 0);
    CHECK_CUDA(cudaMemcpyAsync(host, part(r, QUEUE + (int)(i % SLOTS)),
                               r->count * sizeof(float), cudaMemcpyDeviceToHost,
                               r->stream));
    CHECK_NCCL(ncclSignal(0, 0, 0, 0, r->comm, r->stream));
    CHECK_CUDA(cudaStreamSynchronize(r->stream)); // the host reads it now
    for (size_t k = 0; k < r->count; k++)
        lesson_expect(k, (double)host[k], (double)((i + k) % 1000));
}

/* Items pass from rank 0 to rank 1. Nobody asks whether there is an item, or room: the
 * signals say so. */
static void queue(const struct ranks *r, size_t items, float *host) {
    for (size_t i = 0; r->rank == 0 && i < items; i++)
        give(r, i, host);
    for (size_t i = 0; r->rank == 1 && i < items; i++)
        take(r, i, host);
    // Signals that nobody waits for would be taken for those of a later queue.
    for (size_t i = 0; r->rank == 0 && i < items && i < SLOTS; i++)
        wait_for(r, 1);
    CHECK_CUDA(cudaStreamSynchronize(r->stream));
    report_queue(items);
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct ranks r;
    int nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &r.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    size_t items;
    report_options(argc, argv, &r.count, &items);
    r.left = (r.rank + nranks - 1) % nranks;
    r.right = (r.rank + 1) % nranks;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(r.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (r.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&r.comm, nranks, id, r.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));

    // The window: all ranks register it together, and may write to all parts.
    const size_t bytes = PARTS * r.count * sizeof(float);
    float *host = lesson_malloc(bytes);
    lesson_need_memory(bytes);
    CHECK_NCCL(ncclMemAlloc((void **)&r.memory, bytes));
    CHECK_NCCL(ncclCommWindowRegister(r.comm, r.memory, bytes, &r.window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    if (!r.window) // the call succeeds even where NCCL can't make one
        lesson_fail("NCCL has no windows here, so nothing can be put");
    for (size_t i = 0; i < r.count; i++)
        host[i] = (float)r.rank;
    CHECK_CUDA(cudaMemcpyAsync(part(&r, MINE), host, r.count * sizeof(float),
                               cudaMemcpyHostToDevice, r.stream));
    halo(&r, "send and receive", exchange_by_send, host);
    halo(&r, "put and signal", exchange_by_put, host);
    if (nranks > 1)
        queue(&r, items, host);
    const int exit_code = lesson_verdict("element");

    CHECK_NCCL(ncclCommWindowDeregister(r.comm, r.window));
    CHECK_NCCL(ncclMemFree(r.memory));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(r.stream));
    CHECK_NCCL(ncclCommDestroy(r.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
