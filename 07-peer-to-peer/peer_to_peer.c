/*
 * Peer to peer: what a copy from one GPU's memory into another's costs, in three ways.
 *
 *     mpirun -np 4 ./peer_to_peer [-n COUNT] [-h]
 */
#include "clock.h"
#include "table.h" // draws the tables

enum { THROUGH_HOST, DIRECTLY, BY_NCCL };
enum { REPEAT = 10 }; // copies that are timed together

/* What every rank tells the others about itself. */
struct card {
    char machine[MPI_MAX_PROCESSOR_NAME];
    char bus_id[32];           // of its GPU, whose number may differ between processes
    cudaIpcMemHandle_t handle; // of the buffer that it receives into
};

/* This rank, and what it works with. */
struct self {
    int rank, nranks, device;
    size_t count, bytes;    // of a copy
    float *host;            // a buffer on the host,
    float *source, *target; // two on the GPU: sent from, received into
    cudaStream_t stream;
    ncclComm_t comm;
    struct card *cards;     // of all ranks
    int *there, *reachable; // for each rank: the number of its GPU here, -1 if it is not
                            // seen; whether this GPU can reach its memory
};

/* Element i of what `rank` sends: the thousands say who sent it. */
static float value(int rank, size_t i) {
    return (float)(1000 * (rank + 1) + (int)(i % 1000));
}

/* First part: what the CUDA runtime says about each pair. */

/* An address means nothing to another process. A handle does, on the same machine; it is
 * 64 plain bytes, so MPI can carry it. */
static void exchange_cards(const struct self *s) {
    struct card mine = {.machine = ""};
    int length;
    CHECK_MPI(MPI_Get_processor_name(mine.machine, &length));
    CHECK_CUDA(cudaDeviceGetPCIBusId(mine.bus_id, sizeof mine.bus_id, s->device));
    CHECK_CUDA(cudaIpcGetMemHandle(&mine.handle, s->target));
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, s->cards, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));
}

static void ask_runtime(const struct self *s) {
    const char *machine = s->cards[s->rank].machine;
    char row[s->nranks][CELL];
    for (int to = 0; to < s->nranks; to++) {
        const bool near = strcmp(s->cards[to].machine, machine) == 0;
        int *there = &s->there[to], rating, atomics;
        snprintf(row[to], CELL, "%s", near ? "not seen" : "far away");
        s->reachable[to] = near; // if this process does not see the GPU, nobody can say
        if (!near || cudaDeviceGetByPCIBusId(there, s->cards[to].bus_id) != cudaSuccess) {
            *there = -1;
            cudaGetLastError(); // this was only a question: forget the error
        }
        if (to == s->rank && *there != s->device)
            lesson_fail("its own GPU is not where its card says");
        if (*there == s->device)
            snprintf(row[to], CELL, "%s", to == s->rank ? "-" : "same GPU");
        if (*there < 0 || *there == s->device)
            continue;
        CHECK_CUDA(cudaDeviceCanAccessPeer(&s->reachable[to], s->device, *there));
        CHECK_CUDA(cudaDeviceGetP2PAttribute(&rating, cudaDevP2PAttrPerformanceRank,
                                             s->device, *there));
        CHECK_CUDA(cudaDeviceGetP2PAttribute(
            &atomics, cudaDevP2PAttrNativeAtomicSupported, s->device, *there));
        snprintf(row[to], CELL, "%s/%d/%s", s->reachable[to] ? "yes" : "no", rating,
                 atomics ? "yes" : "no");
    }
    print_table("Peer access / performance rank / atomics", row, s->rank, s->nranks);
}

/* Second part: how fast each pair is. */

/* Where the copy goes, on the rank that sends. Through the host: memory that this process
 * has on the other GPU, without peer access. Directly: the other rank's own buffer;
 * opening its handle enables peer access. */
static float *open_far(const struct self *s, int way, int to) {
    float *far = NULL;
    if (way == THROUGH_HOST) {
        CHECK_CUDA(cudaSetDevice(s->there[to]));
        CHECK_CUDA(cudaMalloc((void **)&far, s->bytes));
        CHECK_CUDA(cudaSetDevice(s->device));
    } else if (way == DIRECTLY) {
        CHECK_CUDA(cudaIpcOpenMemHandle((void **)&far, s->cards[to].handle,
                                        cudaIpcMemLazyEnablePeerAccess));
    }
    return far;
}

/* Queues one copy. Only NCCL asks the receiver to make a call. */
static void queue_copy(const struct self *s, int way, int from, int to, float *far) {
    if (s->rank == from && way == THROUGH_HOST)
        CHECK_CUDA(cudaMemcpyPeerAsync(far, s->there[to], s->source, s->device, s->bytes,
                                       s->stream));
    else if (s->rank == from && way == DIRECTLY)
        CHECK_CUDA(cudaMemcpyAsync(far, s->source, s->bytes, cudaMemcpyDeviceToDevice,
                                   s->stream));
    else if (s->rank == from)
        CHECK_NCCL(ncclSend(s->source, s->count, ncclFloat, to, s->comm, s->stream));
    else if (s->rank == to && way == BY_NCCL)
        CHECK_NCCL(ncclRecv(s->target, s->count, ncclFloat, from, s->comm, s->stream));
}

static void close_far(int way, float *far) {
    if (way == THROUGH_HOST)
        CHECK_CUDA(cudaFree(far));
    else if (way == DIRECTLY)
        CHECK_CUDA(cudaIpcCloseMemHandle(far));
}

/* One pair, while the others wait: seconds for a copy. The data is checked. */
static double time_pair(const struct self *s, int way, int from, int to) {
    float *far = s->rank == from ? open_far(s, way, to) : NULL;
    // So that nothing that came before is taken for the copy.
    CHECK_CUDA(cudaMemsetAsync(s->target, 0, s->bytes, s->stream));
    CHECK_CUDA(cudaStreamSynchronize(s->stream));

    struct stopwatch watch = {0};
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < REPEAT; i++)
            queue_copy(s, way, from, to, far);
        CHECK_CUDA(cudaStreamSynchronize(s->stream)); // then the copies are done
        stopwatch_stop(&watch, REPEAT);               // and all ranks know it
    }

    // The receiver of a direct copy has made no call. It knows that the data is there
    // because the sender has waited, and then all ranks have stopped the watch together.
    if (s->rank == (way == THROUGH_HOST ? from : to)) {
        CHECK_CUDA(cudaMemcpy(s->host, way == THROUGH_HOST ? far : s->target, s->bytes,
                              cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < s->count; i++)
            lesson_expect(i, (double)s->host[i], (double)value(from, i));
    }
    if (s->rank == from)
        close_far(way, far);
    return watch.seconds;
}

static void measure(const struct self *s, int way) {
    const char *titles[] = {"Through the host, GB/s", "Directly, GB/s", "By NCCL, GB/s"};
    char row[s->nranks][CELL];
    for (int pair = 0; pair < s->nranks * s->nranks; pair++) {
        const int from = pair / s->nranks, to = pair % s->nranks;
        int possible =
            way == BY_NCCL || (way == DIRECTLY ? s->reachable[to] : s->there[to] >= 0);
        CHECK_MPI(MPI_Bcast(&possible, 1, MPI_INT, from, MPI_COMM_WORLD));
        if (s->rank == from)
            snprintf(row[to], CELL, "-");
        if (!possible || from == to)
            continue;
        const double seconds = time_pair(s, way, from, to);
        if (s->rank == from)
            snprintf(row[to], CELL, "%.1f", (double)s->bytes / seconds / 1e9);
    }
    print_table(titles[way], row, s->rank, s->nranks);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct self s;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &s.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &s.nranks));
    s.count = lesson_count(argc, argv, "floats in a copy", 1 << 18);
    s.bytes = s.count * sizeof(float);

    // Each rank has a GPU of its own.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    s.device = s.rank % ndevices;
    CHECK_CUDA(cudaSetDevice(s.device));
    lesson_one_gpu_per_rank();

    // The copy through the host takes a third buffer, on the other GPU.
    lesson_need_memory(3 * s.bytes);
    s.host = lesson_malloc(s.bytes);
    for (size_t i = 0; i < s.count; i++)
        s.host[i] = value(s.rank, i);
    CHECK_CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&s.source, s.bytes));
    CHECK_CUDA(cudaMalloc((void **)&s.target, s.bytes));
    CHECK_CUDA(
        cudaMemcpyAsync(s.source, s.host, s.bytes, cudaMemcpyHostToDevice, s.stream));
    CHECK_CUDA(cudaStreamSynchronize(s.stream));

    struct card cards[s.nranks];
    int there[s.nranks], reachable[s.nranks];
    s.cards = cards, s.there = there, s.reachable = reachable;
    exchange_cards(&s);
    ask_runtime(&s);
    measure(&s, THROUGH_HOST);
    measure(&s, DIRECTLY);

    // The communicator comes only now: NCCL opens ways between GPUs, too, and the copies
    // through the host are to be without any.
    ncclUniqueId id;
    if (s.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&s.comm, s.nranks, id, s.rank));
    measure(&s, BY_NCCL);

    // All ranks meet in the verdict: after it, nobody has another's buffer open.
    int exit_code = 0;
    if (s.nranks > 1)
        exit_code = lesson_verdict("element");
    else
        printf("OK: 1 rank, so there is no pair of GPUs to copy between\n");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_NCCL(ncclCommDestroy(s.comm));
    CHECK_CUDA(cudaFree(s.target));
    CHECK_CUDA(cudaFree(s.source));
    CHECK_CUDA(cudaStreamDestroy(s.stream));
    free(s.host);
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
