/*
 * What NCCL 2.22 to 2.32 brought: communicators that shrink, grow, are revoked or
 * suspended, first calls that wait, several unique ids, windows, puts and signals, a
 * configuration for each collective, and NCCL's parameters.
 */
#include "ints.h"
#include <stdatomic.h>
#include <unistd.h>

static ncclComm_t comm;
static cudaStream_t stream;
static int rank, nranks;

static ncclResult_t settled(ncclComm_t c) {
    ncclResult_t state = ncclInProgress;
    for (int i = 0; i < 20000 && state == ncclInProgress; i++) {
        NCCL(ncclCommGetAsyncError(c, &state));
        if (state == ncclInProgress)
            usleep(500);
    }
    return state;
}

static ncclConfig_t config_of(bool blocking) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    return config;
}

/* The sum of the world ranks of all members, in `c`. */
static void expect_sum(ncclComm_t c, int n, int sum) {
    int size = 0, *a = new_ints(1);
    NCCL(ncclCommCount(c, &size));
    expect(size == n, "%d ranks, expected %d", size, n);
    set_ints(a, 1, rank);
    ncclResult_t result = ncclAllReduce(a, a, 1, ncclInt, ncclSum, c, stream);
    expect(result == ncclSuccess || result == ncclInProgress, "ncclAllReduce: %s",
           ncclGetLastError(NULL));
    settled(c);
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 1, sum, "the sum of the ranks");
    CUDA(cudaFree(a));
}

static ncclUniqueId id_of(int root) {
    ncclUniqueId id;
    if (rank == root)
        NCCL(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, root, MPI_COMM_WORLD);
    return id;
}

/* --- Communicators ---------------------------------------------------------------- */

/* All ranks on one that does not block its calls, nor do those of what is made of it. */
static ncclComm_t patient_comm(void) {
    ncclConfig_t config = config_of(false);
    ncclUniqueId id = id_of(0);
    ncclComm_t c = NULL;
    NCCL_IS(ncclInProgress, ncclCommInitRankConfig(&c, nranks, id, rank, &config));
    expect(settled(c) == ncclSuccess, "it is not ready");
    return c;
}

static void let_go(ncclComm_t c) {
    ncclCommFinalize(c);
    settled(c);
    NCCL(ncclCommDestroy(c));
}

static void shrink(bool blocking) {
    ncclComm_t from = blocking ? comm : patient_comm();
    for (int out = nranks > 1 ? 0 : nranks; out < nranks; out += nranks - 1) {
        ncclComm_t rest = NULL, same = NULL;
        if (rank != out) {
            int me = -1;
            for (int again = 0; again < 2; again++) {
                ncclComm_t *to = again ? &same : &rest;
                NCCL(ncclCommShrink(from, &out, 1, to, NULL, NCCL_SHRINK_DEFAULT));
                expect(settled(from) == ncclSuccess && settled(*to) == ncclSuccess,
                       "it is not ready");
                expect_sum(*to, nranks - 1, nranks * (nranks - 1) / 2 - out);
            }
            NCCL(ncclCommUserRank(rest, &me));
            expect(me == rank - (rank > out), "rank %d", me);
            let_go(same);
            let_go(rest);
        }
        expect_sum(from, nranks, nranks * (nranks - 1) / 2);
    }
    if (!blocking)
        let_go(from);
    point("without the first and the last rank, twice, %sblocking",
          blocking ? "" : "not ");

    int mine[] = {rank};
    ncclComm_t none = NULL;
    NCCL_IS(ncclInvalidArgument, ncclCommShrink(comm, mine, 1, &none, NULL, 0));
    NCCL_IS(ncclInvalidArgument, ncclCommShrink(comm, mine, 0, &none, NULL, 0));
    NCCL_IS(ncclInvalidArgument, ncclCommShrink(comm, NULL, 1, &none, NULL, 0));
    point("a rank that is left out may not call it, nor is there an empty list");
}

/* Rank 0 comes late. */
static void handle_of_a_split(void) {
    ncclComm_t from = patient_comm(), part = from;
    ncclConfig_t config = config_of(true); /* what is split waits, or not */
    if (rank > 0) {
        NCCL(ncclCommSplit(from, 0, 0, &part, &config));
        expect(part == NULL, "it is there without rank 0");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        NCCL(ncclCommSplit(from, 0, 0, &part, &config));
    expect(settled(from) == ncclSuccess && part, "it is not there");
    expect_sum(part, nranks, nranks * (nranks - 1) / 2);
    NCCL(ncclCommDestroy(part));
    /* In a group nothing begins before its end: until then it can be asked. */
    int size = 0;
    NCCL(ncclGroupStart());
    NCCL(ncclCommSplit(from, 0, 0, &part, &config));
    NCCL(ncclCommCount(from, &size));
    NCCL_IS(ncclInProgress, ncclGroupEnd());
    expect(settled(from) == ncclSuccess && part, "it is not there");
    NCCL(ncclCommDestroy(part));
    let_go(from);
    point("the handle of what is split is NULL until its parent has settled");
}

/* The last rank never comes to the all-reduce; the others go on without it. */
static void shrink_with_abort(void) {
    ncclComm_t broken = world_comm(), rest = NULL;
    int out = nranks - 1, *a = new_ints(1);
    if (rank != out) {
        ncclConfig_t config = config_of(true);
        set_ints(a, 1, rank);
        expect_sum(broken, nranks, nranks * (nranks - 1) / 2);
        NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclSum, broken, stream));
        expect(cudaStreamQuery(stream) == cudaErrorNotReady, "it went on without a rank");
        NCCL(ncclCommShrink(broken, &out, 1, &rest, &config, NCCL_SHRINK_ABORT));
        CUDA(cudaStreamSynchronize(stream));
        expect_sum(rest, nranks - 1, nranks * (nranks - 1) / 2 - out);
        NCCL(ncclCommDestroy(rest));
    } else {
        expect_sum(broken, nranks, nranks * (nranks - 1) / 2);
    }
    NCCL(ncclCommAbort(broken));
    CUDA(cudaFree(a));
    point("NCCL_SHRINK_ABORT drops what waits for the lost rank");
}

static void revoked(void) {
    ncclComm_t broken = world_comm(), half = NULL;
    int *a = new_ints(1);
    expect_sum(broken, nranks, nranks * (nranks - 1) / 2);
    set_ints(a, 1, rank);
    if (rank > 0) {
        NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclSum, broken, stream));
        expect(cudaStreamQuery(stream) == cudaErrorNotReady, "it went on without rank 0");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    NCCL_IS(ncclInvalidArgument, ncclCommRevoke(broken, 1));
    NCCL(ncclCommRevoke(broken, NCCL_REVOKE_DEFAULT));
    CUDA(cudaStreamSynchronize(stream));
    NCCL_IS(ncclInvalidArgument, ncclCommRevoke(broken, NCCL_REVOKE_DEFAULT));
    NCCL_IS(ncclInvalidUsage, ncclAllReduce(a, a, 1, ncclInt, ncclSum, broken, stream));
    NCCL_IS(ncclInvalidArgument, ncclCommFinalize(broken));
    NCCL(ncclCommSplit(broken, 0, 0, &half, NULL));
    expect_sum(half, nranks, nranks * (nranks - 1) / 2);
    NCCL(ncclCommDestroy(half));
    NCCL(ncclCommDestroy(broken));
    CUDA(cudaFree(a));
    point("a revoked communicator drops its work, and can be split and destroyed");
}

static void grow(bool blocking) {
    /* The first half is there, the second half joins. */
    int half = (nranks + 1) / 2, root = half - 1;
    ncclConfig_t config = config_of(blocking);
    ncclComm_t old = NULL, all = NULL;
    ncclUniqueId id;
    NCCL(ncclCommSplit(comm, rank < half ? 0 : NCCL_SPLIT_NOCOLOR, 0, &old, NULL));
    if (rank == root)
        NCCL(ncclCommGetUniqueId(old, &id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, root, MPI_COMM_WORLD);
    if (old && nranks > 1) {
        NCCL_IS(ncclInvalidArgument, ncclCommGrow(old, nranks, NULL, rank, &all, NULL));
        NCCL_IS(ncclInvalidArgument, ncclCommGrow(old, half, NULL, -1, &all, NULL));
    } else {
        NCCL_IS(ncclInvalidArgument, ncclCommGrow(NULL, nranks, NULL, rank, &all, NULL));
        NCCL_IS(ncclInvalidArgument, ncclCommGrow(NULL, nranks, &id, nranks, &all, NULL));
    }
    if (nranks > 1) {
        NCCL(ncclCommGrow(old, nranks, old && rank != root ? NULL : &id, old ? -1 : rank,
                          &all, &config));
        expect(settled(all) == ncclSuccess, "it is not ready");
        expect_sum(all, nranks, nranks * (nranks - 1) / 2);
        let_go(all);
    }
    if (old)
        NCCL(ncclCommDestroy(old));
    NCCL(ncclCommSplit(comm, rank, 0, &old, NULL));
    NCCL(ncclCommGetUniqueId(old, &id));
    NCCL(ncclCommGetUniqueId(old, &id));
    NCCL(ncclCommDestroy(old));
    point("half of the ranks grow to all of them, %sblocking", blocking ? "" : "not ");
}

static void several_ids(void) {
    ncclComm_t c = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId ids[3];
    int n = nranks < 3 ? nranks : 3;
    for (int i = 0; i < n; i++)
        ids[i] = id_of(i);
    NCCL_IS(ncclInvalidArgument,
            ncclCommInitRankScalable(&c, nranks, rank, 0, ids, &config));
    NCCL_IS(ncclInvalidArgument,
            ncclCommInitRankScalable(&c, nranks, rank, nranks + 1, ids, &config));
    NCCL(ncclCommInitRankScalable(&c, nranks, rank, n, ids, &config));
    expect_sum(c, nranks, nranks * (nranks - 1) / 2);
    NCCL(ncclCommDestroy(c));
    point("ncclCommInitRankScalable with %d ids", n);
}

static void named_place(void) {
    const char *const none[] = {"",    "foo",   "foo:",   ":1",
                                "::1", "[::1]", "[::1]1", "[::1"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ncclUniqueId id;
        setenv("NCCL_COMM_ID", none[i], 1);
        NCCL_IS(ncclInvalidArgument, ncclGetUniqueId(&id));
    }
    setenv("NCCL_COMM_ID", "[::1]:12345", 1);
    NCCL(ncclGetUniqueId(&(ncclUniqueId){0}));
    setenv("NCCL_COMM_ID", "127.0.0.1:12345", 1);
    for (int again = 0; again < 2; again++) {
        ncclUniqueId id;
        ncclComm_t c = NULL;
        NCCL(ncclGetUniqueId(&id));
        NCCL(ncclCommInitRank(&c, nranks, id, rank));
        expect_sum(c, nranks, nranks * (nranks - 1) / 2);
        NCCL(ncclCommDestroy(c));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    unsetenv("NCCL_COMM_ID");
    point("with NCCL_COMM_ID, an address, each rank makes the id by itself, twice");
}

static void captured(void) {
    cudaGraph_t graph = NULL;
    ncclUniqueId id = id_of(0);
    ncclComm_t none = NULL;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NCCL_IS(ncclUnhandledCudaError, ncclCommInitRank(&none, nranks, id, rank));
    expect(strstr(ncclGetLastError(NULL), "not permitted when stream is capturing"),
           "it says: %s", ncclGetLastError(NULL));
    CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    point("a communicator cannot be made while a stream is captured");
}

static void suspend(void) {
    uint64_t bytes = 1, suspended = 2;
    size_t n = 1 << 20;
    int *a = new_ints(n);
    set_ints(a, n, 1);
    NCCL(ncclReduceScatter(a, a, n / (size_t)nranks, ncclInt, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclSum, comm, stream));
    NCCL_IS(ncclInvalidUsage, ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    NCCL(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &suspended));
    NCCL(ncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes));
    expect(suspended == 1 && bytes == 0, "suspended %d, %d bytes", (int)suspended,
           (int)bytes);
    NCCL(ncclCommResume(comm));
    NCCL_IS(ncclInvalidUsage, ncclCommResume(comm));
    NCCL(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &suspended));
    expect(suspended == 0, "still suspended");
    expect_sum(comm, nranks, nranks * (nranks - 1) / 2);
    CUDA(cudaFree(a));
    point("a suspended communicator has no memory, and comes back");
}

/* --- The first call between ranks ------------------------------------------------- */

/* Rank 0 comes last: it says so just before. True: whoever is back knows it. */
static bool rank_0_has_come(void) {
    int there = 0;
    MPI_Iprobe(0, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    return there;
}

static void rank_0_comes(void) {
    usleep(30000);
    for (int r = 1; r < nranks; r++)
        MPI_Send(NULL, 0, MPI_INT, r, 7, MPI_COMM_WORLD);
}

static void take_its_word(void) {
    if (rank > 0)
        MPI_Recv(NULL, 0, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 comes after the others are back: they must not have waited for it. */
static void expect_no_wait(void (*call)(ncclComm_t c, int *a), ncclComm_t c, int *a) {
    if (rank > 0)
        call(c, a);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        call(c, a);
    CUDA(cudaStreamSynchronize(stream));
}

static void all_reduce(ncclComm_t c, int *a) {
    NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclSum, c, stream));
}

static void broadcast(ncclComm_t c, int *a) {
    NCCL(ncclBroadcast(a, a, 5000, ncclInt, 0, c, stream));
}

static void to_rank_0(ncclComm_t c, int *a) {
    NCCL(ncclGroupStart());
    for (int r = 1; r < nranks && rank == 0; r++)
        NCCL(ncclRecv(a + r, 1, ncclInt, r, c, stream));
    if (rank > 0)
        NCCL(ncclSend(a, 1, ncclInt, 0, c, stream));
    NCCL(ncclGroupEnd());
}

static void first_calls(void) {
    int *a = new_ints(5000);
    void (*const calls[])(ncclComm_t c, int *a) = {all_reduce, to_rank_0};
    ncclComm_t c = world_comm();
    set_ints(a, 5000, 1);
    for (int i = 0; i < 2; i++) {
        if (rank == 0)
            rank_0_comes();
        calls[i](c, a);
        expect(rank == 0 || rank_0_has_come(), "the first call did not wait: %d", i);
        take_its_word();
        CUDA(cudaStreamSynchronize(stream));
        expect_no_wait(calls[i], c, a);
    }
    expect_no_wait(broadcast, c, a);
    NCCL(ncclCommDestroy(c));
    point("the first collective, and the first send, wait on the host; no others do");

    ncclResult_t state = ncclSuccess;
    c = patient_comm();
    if (rank > 0) {
        NCCL_IS(ncclInProgress, ncclAllReduce(a, a, 1, ncclInt, ncclSum, c, stream));
        NCCL(ncclCommGetAsyncError(c, &state));
        expect(state == ncclInProgress, "it is done without rank 0");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        NCCL_IS(ncclInProgress, ncclAllReduce(a, a, 1, ncclInt, ncclSum, c, stream));
    expect(settled(c) == ncclSuccess, "it is not ready");
    CUDA(cudaStreamSynchronize(stream));
    let_go(c);
    CUDA(cudaFree(a));
    point("a communicator that does not block says ncclInProgress meanwhile");
}

/* --- Windows ---------------------------------------------------------------------- */

enum { ROOM = 20000 }; /* ints of a window */

struct window {
    int *at;
    ncclWindow_t handle;
};

static struct window window_on(ncclComm_t c) {
    struct window window;
    NCCL(ncclMemAlloc((void **)&window.at, ROOM * sizeof(int)));
    set_ints(window.at, ROOM, -1);
    ncclResult_t result = ncclCommWindowRegister(c, window.at, ROOM * sizeof(int),
                                                 &window.handle, NCCL_WIN_COLL_SYMMETRIC);
    expect(result == ncclSuccess || result == ncclInProgress, "window: %s",
           ncclGetLastError(NULL));
    expect(settled(c) == ncclSuccess, "the window is not ready");
    return window;
}

static void close_window(ncclComm_t c, struct window window) {
    NCCL(ncclCommWindowDeregister(c, window.handle));
    NCCL(ncclMemFree(window.at));
}

static ncclResult_t put(const int *from, size_t n, int peer, struct window to,
                        size_t index) {
    return ncclPutSignal(from, n, ncclInt, peer, to.handle, index * sizeof(int), 0, 0, 0,
                         comm, stream);
}

static ncclResult_t wait_for(int n, int peer) {
    ncclWaitSignalDesc_t one = {.opCnt = n, .peer = peer};
    return ncclWaitSignal(1, &one, comm, stream);
}

/* Each rank puts a message to its neighbour, small ones and large ones. */
static void ring(struct window from, struct window to) {
    static const size_t sizes[] = {0, 1, 100, ROOM};
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    for (int i = 0; i < 4; i++) {
        set_message(from.at, sizes[i], rank, i);
        NCCL(put(from.at, sizes[i], right, to, ROOM - sizes[i]));
        NCCL(wait_for(1, left));
        CUDA(cudaStreamSynchronize(stream));
        expect_message(to.at + ROOM - sizes[i], sizes[i], left, i, "what the left put");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    point("puts to the neighbour, of 0 to %d ints", ROOM);

    for (int i = 0; i < 10; i++)
        NCCL(put(from.at + i, 1, right, to, 0));
    NCCL(ncclSignal(right, 0, 0, 0, comm, stream));
    NCCL(wait_for(4, left));
    NCCL(wait_for(7, left));
    CUDA(cudaStreamSynchronize(stream));
    int last = 0;
    CUDA(cudaMemcpy(&last, to.at, sizeof last, cudaMemcpyDeviceToHost));
    expect(last == value_of(left, 3, 9), "the last of ten puts is not there: %d", last);
    point("signals are counted and used up, and puts stay in order");
}

static void barrier(void) {
    ncclWaitSignalDesc_t all[16] = {{0, 0, 0, 0}};
    for (int round = 0; round < 5; round++) {
        NCCL(ncclGroupStart());
        for (int r = 0; r < nranks; r++) {
            all[r] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = r};
            NCCL(ncclSignal(r, 0, 0, 0, comm, stream));
        }
        NCCL(ncclGroupEnd());
        NCCL(ncclWaitSignal(nranks, all, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
    }
    point("a barrier of signals, to oneself, too");
}

/* Nobody's data is seen before its signal: a rank that is late signals late. */
static void late(struct window from, struct window to) {
    int last = nranks - 1;
    if (rank == last && nranks > 1) {
        usleep(50000);
        set_ints(from.at, 1, 77);
        for (int r = 0; r < last; r++)
            NCCL(put(from.at, 1, r, to, 5));
        CUDA(cudaStreamSynchronize(stream));
    } else if (nranks > 1) {
        NCCL(wait_for(1, last));
        expect(cudaStreamQuery(stream) == cudaErrorNotReady, "it did not wait");
        CUDA(cudaStreamSynchronize(stream));
        expect_ints(to.at + 5, 1, 77, "what the last rank put");
    }
    point("a stream waits for a signal that comes late");
}

static void in_a_graph(struct window from, struct window to) {
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MPI_Barrier(MPI_COMM_WORLD);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    NCCL(put(from.at, 3, right, to, 10));
    NCCL(wait_for(1, left));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        set_message(from.at, 3, rank, i);
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect_message(to.at + 10, 3, left, i, "what a graph put");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    point("puts and waits in a graph");
}

static void refused(struct window from, struct window to) {
    int *other = new_ints(1);
    void *address = NULL;
    ncclWaitSignalDesc_t wait = {.opCnt = 0, .peer = 0};
    NCCL(ncclWinGetUserPtr(comm, to.handle, &address));
    expect(address == to.at, "the window's address is %p", address);
    NCCL_IS(ncclInvalidArgument, put(other, 1, 0, to, 0)); /* in no window */
    NCCL_IS(ncclInvalidArgument, put(from.at, 1, nranks, to, 0));
    NCCL_IS(ncclInvalidArgument,
            ncclPutSignal(from.at, 1, ncclInt, 0, to.handle, 0, 1, 0, 0, comm, stream));
    NCCL_IS(ncclInvalidArgument,
            ncclPutSignal(from.at, 1, ncclInt, 0, to.handle, 0, 0, 1, 0, comm, stream));
    NCCL_IS(ncclInvalidArgument,
            ncclPutSignal(from.at, 1, ncclInt, 0, to.handle, 0, 0, 0, 1, comm, stream));
    NCCL_IS(ncclInvalidArgument,
            ncclPutSignal(from.at, 1, ncclInt, 0, NULL, 0, 0, 0, 0, comm, stream));
    NCCL_IS(ncclInvalidArgument, ncclWaitSignal(1, &wait, comm, stream));
    NCCL_IS(ncclInvalidArgument, ncclWaitSignal(0, &wait, comm, stream));
    NCCL_IS(ncclInternalError, ncclWinGetUserPtr(comm, (ncclWindow_t)other, &address));
    NCCL_IS(ncclInternalError, ncclCommWindowDeregister(comm, (ncclWindow_t)other));
    NCCL_IS(ncclInvalidArgument, ncclWinGetUserPtr(comm, NULL, &address));
    NCCL(ncclCommWindowDeregister(comm, NULL));
    CUDA(cudaFree(other));
    point("what a put or a wait must not be given");
}

/* With numRmaSig a communicator has several signals, which are counted apart. */
static void several_signals(void) {
    ncclConfig_t config = config_of(true);
    ncclUniqueId id = id_of(0);
    ncclComm_t c = NULL;
    config.numRmaSig = 3;
    NCCL(ncclCommInitRankConfig(&c, nranks, id, rank, &config));
    ncclWaitSignalDesc_t waits[] = {{1, 0, 2, 0}, {2, 0, 1, 0}};
    NCCL_IS(ncclInvalidUsage, ncclSignal(0, 1, 0, 0, c, stream));
    NCCL_IS(ncclInvalidUsage, ncclWaitSignal(2, waits, c, stream));
    struct window window = window_on(c);
    NCCL_IS(ncclInvalidArgument, ncclSignal(0, 3, 0, 0, c, stream));
    for (int r = 0; r < nranks && rank == 0; r++) {
        NCCL(ncclSignal(r, 1, 0, 0, c, stream));
        NCCL(ncclSignal(r, 2, 0, 0, c, stream));
        NCCL(ncclSignal(r, 1, 0, 0, c, stream));
    }
    NCCL(ncclWaitSignal(2, waits, c, stream));
    CUDA(cudaStreamSynchronize(stream));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(c, window);
    NCCL(ncclCommDestroy(c));
    point("three signals by numRmaSig, once a window is registered");
}

static void one_sided(void) {
    struct window from = window_on(comm), to = window_on(comm);
    ring(from, to);
    barrier();
    late(from, to);
    in_a_graph(from, to);
    refused(from, to);
    several_signals();
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(comm, to);
    close_window(comm, from);
    NCCL_IS(ncclInternalError, ncclCommWindowDeregister(comm, from.handle));

    ncclComm_t slow = patient_comm();
    close_window(slow, window_on(slow));
    let_go(slow);
    point("windows of a communicator that does not block");
}

/* --- Calls ------------------------------------------------------------------------ */

static void takes_a_while(void *done) {
    usleep(100000);
    *(atomic_int *)done = 1;
}

/* The event of a launch comes after what all streams of the group held. */
static void launch_of_two_streams(int *a, int *b, const ncclCollConfig_t *config) {
    cudaStream_t slow;
    atomic_int done = 0;
    CUDA(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
    CUDA(cudaLaunchHostFunc(slow, takes_a_while, &done));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclMax, comm, slow));
    NCCL(ncclAllReduceConfig(b, b, 1, ncclInt, ncclMax, comm, stream, config));
    NCCL(ncclGroupEnd());
    CUDA(cudaEventSynchronize(config->launchCompletionEvent));
    expect(done == 1, "the event is recorded too early");
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(slow));
}

static void configured_calls(void) {
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER, wrong = {0};
    size_t n = (size_t)nranks;
    int *a = new_ints(2 * n), *b = a + n;
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    config.maxCTAs = 4;
    config.launchCompletionEvent = event;
    set_ints(a, n, 1);
    NCCL(ncclAllReduceConfig(a, b, n, ncclInt, ncclSum, comm, stream, &config));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(b, n, nranks, "all-reduce");
    launch_of_two_streams(a, a + 1, &config);
    config.launchCompletionEvent = NULL;
    NCCL(ncclBroadcastConfig(b, a, n, ncclInt, 0, comm, stream, &config));
    NCCL(ncclReduceScatterConfig(a, b, 1, ncclInt, ncclSum, comm, stream, &config));
    NCCL(ncclAllGatherConfig(b, a, 1, ncclInt, comm, stream, &config));
    NCCL(ncclAlltoAllConfig(a, b, 1, ncclInt, comm, stream, NULL));
    NCCL(ncclGatherConfig(b, a, 1, ncclInt, 0, comm, stream, &config));
    NCCL(ncclScatterConfig(a, b, 1, ncclInt, 0, comm, stream, &config));
    NCCL(ncclReduceConfig(b, a, 1, ncclInt, ncclMax, 0, comm, stream, &config));
    NCCL_IS(ncclInvalidArgument,
            ncclAllReduceConfig(a, b, n, ncclInt, ncclSum, comm, stream, &wrong));
    CUDA(cudaStreamSynchronize(stream));
    if (rank == 0)
        expect_ints(a, 1, nranks * nranks, "after all eight");
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFree(a));
    point("the eight collectives with a configuration of their own");
}

static void parameters(void) {
    ncclParamHandle_t handle = NULL;
    const char *text = NULL, **keys = NULL;
    int length = -1, n = -1;
    NCCL_IS(ncclInvalidArgument, ncclParamBind(&handle, "NCCL_DEBUG"));
    NCCL_IS(ncclInvalidArgument, ncclParamGetStr(handle, &text));
    NCCL_IS(ncclInvalidArgument, ncclParamGetParameter("NCCL_DEBUG", &text, &length));
    NCCL(ncclParamGetAllParameterKeys(&keys, &n));
    expect(n == 0, "%d keys", n);
    point("there are no parameters");
}

static void others(void) {
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    ncclEncryptionConfig_t plain = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
    int *a = new_ints(1);
    set_ints(a, 1, rank);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 1, ncclInt, ncclSum, comm, stream));
    NCCL(ncclGroupSimulateEnd(&info));
    expect(info.estimatedTime == NCCL_UNDEF_FLOAT, "%g µs by no clock",
           (double)info.estimatedTime);
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 1, rank, "what was only simulated");
    NCCL_IS(ncclInvalidUsage, ncclGroupSimulateEnd(&info));
    NCCL(ncclSetEncryption(&plain));
    CUDA(cudaFree(a));
    point("a group that is only simulated changes nothing");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    rank = tap_rank;
    nranks = tap_ranks;
    comm = world_comm();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    shrink(true);
    shrink(false);
    if (nranks > 1) {
        shrink_with_abort();
        revoked();
        handle_of_a_split();
        first_calls();
    }
    grow(true);
    grow(false);
    several_ids();
    named_place();
    captured();
    suspend();
    one_sided();
    configured_calls();
    parameters();
    others();
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    return finish();
}
