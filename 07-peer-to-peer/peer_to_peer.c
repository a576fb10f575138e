/*
 * Peer to peer: what a copy from one GPU's memory into another's costs, in three ways.
 *
 *     mpirun -np 4 ./peer_to_peer [-n COUNT] [-h]
 *
 * Beside it, peers.h asks the CUDA runtime about each pair, matrix.h draws the tables.
 */
#include "clock.h"
#include "matrix.h"
#include "peers.h"

enum { THROUGH_HOST, DIRECTLY, BY_NCCL };
enum { REPEAT = 10 }; // copies that are timed together

/* This rank, and what it works with. */
struct self {
    int rank, nranks, device;
    size_t count, bytes;         // of a copy
    float *host;                 // a buffer on the host,
    float *source, *target;      // two on the GPU: sent from, received into
    cudaIpcMemHandle_t *handles; // of every rank's target
    struct peer *peers;          // every rank's GPU, as this process sees it
    cudaStream_t stream;
    ncclComm_t comm;
};

/* Element i of what `rank` sends: the thousands say who sent it. */
static float value(int rank, size_t i) {
    return (float)(1000 * (rank + 1) + (int)(i % 1000));
}

/* Where the copy goes, on the rank that sends. Through the host: memory that this process
 * has on the other GPU, without peer access. Directly: the other rank's own buffer;
 * opening its handle enables peer access. */
static float *open_far(const struct self *s, int way, int to) {
    float *far = NULL;
    if (way == THROUGH_HOST) {
        CHECK_CUDA(cudaSetDevice(s->peers[to].device));
        CHECK_CUDA(cudaMalloc((void **)&far, s->bytes));
        CHECK_CUDA(cudaSetDevice(s->device));
    } else if (way == DIRECTLY) {
        CHECK_CUDA(cudaIpcOpenMemHandle((void **)&far, s->handles[to],
                                        cudaIpcMemLazyEnablePeerAccess));
    }
    return far;
}

/* Queues one copy. Only NCCL asks the receiver to make a call. */
static void queue_copy(const struct self *s, int way, int from, int to, float *far) {
    if (s->rank == from && way == THROUGH_HOST)
        CHECK_CUDA(cudaMemcpyPeerAsync(far, s->peers[to].device, s->source, s->device,
                                       s->bytes, s->stream));
    else if (s->rank == from && way == DIRECTLY)
        CHECK_CUDA(cudaMemcpyAsync(far, s->source, s->bytes, cudaMemcpyDeviceToDevice,
                                   s->stream));
    else if (s->rank == from)
        CHECK_NCCL(ncclSend(s->source, s->count, ncclFloat, to, s->comm, s->stream));
    else if (s->rank == to && way == BY_NCCL)
        CHECK_NCCL(ncclRecv(s->target, s->count, ncclFloat, from, s->comm, s->stream));
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
        stopwatch_stop(&watch, REPEAT);               // tells all ranks, by MPI
    }

    // The receiver of a direct copy has made no call. It knows that the data is there
    // because the sender has waited, and then all ranks have stopped the watch together.
    if (s->rank == (way == THROUGH_HOST ? from : to)) {
        CHECK_CUDA(cudaMemcpy(s->host, way == THROUGH_HOST ? far : s->target, s->bytes,
                              cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < s->count; i++)
            lesson_expect(i, (double)s->host[i], (double)value(from, i));
    }
    if (s->rank == from && way == THROUGH_HOST)
        CHECK_CUDA(cudaFree(far));
    else if (s->rank == from && way == DIRECTLY)
        CHECK_CUDA(cudaIpcCloseMemHandle(far));
    return watch.seconds;
}

/* All pairs in one way, one after the other, and the table of their speeds. */
static void measure(const struct self *s, int way) {
    const char *titles[] = {"Through the host, GB/s", "Directly, GB/s", "By NCCL, GB/s"};
    char row[s->nranks][CELL];
    for (int pair = 0; pair < s->nranks * s->nranks; pair++) {
        const int from = pair / s->nranks, to = pair % s->nranks;
        int possible = way == BY_NCCL || (way == DIRECTLY ? s->peers[to].reachable
                                                          : s->peers[to].device >= 0);
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
    if (s.nranks < 2) {
        fprintf(stderr, "peer_to_peer needs two ranks: mpirun -np 2 ./peer_to_peer\n");
        lesson_leave(2);
    }

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

    // An address means nothing in another process. A handle does, on the same machine,
    // and it is 64 plain bytes, so MPI can carry it.
    cudaIpcMemHandle_t handle, handles[s.nranks];
    CHECK_CUDA(cudaIpcGetMemHandle(&handle, s.target));
    CHECK_MPI(MPI_Allgather(&handle, sizeof handle, MPI_BYTE, handles, sizeof handle,
                            MPI_BYTE, MPI_COMM_WORLD));
    s.handles = handles;

    struct peer peers[s.nranks];
    s.peers = peers;
    ask_runtime(s.rank, s.nranks, s.device, peers);
    measure(&s, THROUGH_HOST);
    measure(&s, DIRECTLY);

    // The communicator comes only now. NCCL also enables peer access, and the copies
    // through the host must be measured before that.
    ncclUniqueId id;
    if (s.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&s.comm, s.nranks, id, s.rank));
    measure(&s, BY_NCCL);

    // All ranks meet in the verdict: after it, nobody has another's buffer open.
    const int exit_code = lesson_verdict("element");

    // Clean up in reverse order, so that nothing goes while something still uses it.
    CHECK_NCCL(ncclCommDestroy(s.comm));
    CHECK_CUDA(cudaFree(s.target));
    CHECK_CUDA(cudaFree(s.source));
    CHECK_CUDA(cudaStreamDestroy(s.stream));
    free(s.host);
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
