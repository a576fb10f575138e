// Puts in ways that are right, each many times: a relay, all to all with one wait for
// all, waits for two signals at once, groups, puts between all-reduces, signals on
// another communicator, reads in a second stream, signals that pass through a third rank.
#include "../check.h"

enum { COUNT = 16, STEPS = 12, MINE = 0, PLACE = 1 };

static int *buf, *got, left, right;
static ncclWindow_t window;
static cudaStream_t other;

static void put(int from, int peer, int block) {
    MUST(ncclPutSignal(buf + from * COUNT, COUNT, ncclInt32, peer, window,
                       (size_t)block * COUNT * sizeof(int), 0, 0, 0, comm, stream));
}

static void signal_to(int peer, ncclComm_t on) {
    MUST(ncclSignal(peer, 0, 0, 0, on, stream));
}

static void wait_for(int peer, int n, ncclComm_t on) {
    ncclWaitSignalDesc_t some = {.opCnt = n, .peer = peer};
    MUST(ncclWaitSignal(1, &some, on, stream));
}

static void take(int block, cudaStream_t in) {
    MUST(cudaMemcpyAsync(got, buf + block * COUNT, COUNT * sizeof(int),
                         cudaMemcpyDeviceToDevice, in));
}

/* Rank 0 begins a round when the one before has come back: by then all have read. */
static void relay(void) {
    for (int i = 0; i < STEPS; i++) {
        if (rank == 0)
            put(MINE, right, PLACE);
        wait_for(left, 1, comm);
        take(PLACE, stream);
        if (rank > 0)
            put(PLACE, right, PLACE);
    }
}

static void all_to_all(void) {
    ncclWaitSignalDesc_t *all = malloc((size_t)nranks * sizeof *all);
    for (int i = 0; i < STEPS; i++) {
        int first = PLACE + i % 2 * nranks, n = 0;
        MUST(ncclGroupStart());
        for (int p = (rank + 1) % nranks; p != rank; p = (p + 1) % nranks) {
            all[n++] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = p};
            put(MINE, p, first + rank);
        }
        MUST(ncclGroupEnd());
        MUST(ncclWaitSignal(n, all, comm, stream));
        for (int k = 0; k < n; k++)
            take(first + all[k].peer, stream);
        if (i % 4 == 3)
            MUST(cudaStreamSynchronize(stream));
    }
    free(all);
}

static void two_at_once(void) {
    for (int i = 0; i < STEPS; i++) {
        put(MINE, right, PLACE);
        put(MINE, right, PLACE + 1);
        wait_for(left, 2, comm);
        take(PLACE + 1, stream);
        take(PLACE, stream);
        signal_to(left, comm);
        wait_for(right, 1, comm);
    }
}

static void between_all_reduces(void) {
    for (int i = 0; i < STEPS; i++) {
        put(MINE, right, PLACE);
        wait_for(left, 1, comm);
        take(PLACE, stream);
        MUST(ncclAllReduce(got, got, 1, ncclInt32, ncclMax, comm, stream));
    }
}

static void two_communicators(void) {
    ncclComm_t back;
    ncclWindow_t unused;
    int *more;
    MUST(ncclCommSplit(comm, 0, rank, &back, NULL));
    MUST(ncclMemAlloc((void **)&more, sizeof(int)));
    MUST(ncclCommWindowRegister(back, more, sizeof(int), &unused,
                                NCCL_WIN_COLL_SYMMETRIC));
    for (int i = 0; i < STEPS; i++) {
        put(MINE, right, PLACE);
        wait_for(left, 1, comm);
        take(PLACE, stream);
        signal_to(left, back);
        wait_for(right, 1, back);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommWindowDeregister(back, unused));
    MUST(ncclMemFree(more));
    MUST(ncclCommDestroy(back));
}

static void second_stream(void) {
    cudaEvent_t come, taken;
    MUST(cudaEventCreateWithFlags(&come, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&taken, cudaEventDisableTiming));
    for (int i = 0; i < STEPS; i++) {
        put(MINE, right, PLACE);
        wait_for(left, 1, comm);
        MUST(cudaEventRecord(come, stream));
        MUST(cudaStreamWaitEvent(other, come, 0));
        take(PLACE, other);
        MUST(cudaEventRecord(taken, other));
        MUST(cudaStreamWaitEvent(stream, taken, 0));
        signal_to(left, comm);
        wait_for(right, 1, comm);
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaEventDestroy(come));
    MUST(cudaEventDestroy(taken));
}

/* What rank 0 puts is read, and the next rank hears that it may put there. */
static void third_rank(void) {
    for (int i = 0; i < STEPS && nranks > 2; i++) {
        if (rank == 0) {
            put(MINE, 2, PLACE);
            wait_for(2, 1, comm);
        } else if (rank == 1) {
            wait_for(2, 1, comm);
            put(MINE, 2, PLACE);
        } else if (rank == 2) {
            wait_for(0, 1, comm);
            take(PLACE, stream);
            signal_to(1, comm);
            wait_for(1, 1, comm);
            take(PLACE, stream);
            signal_to(0, comm);
        }
    }
}

int main(void) {
    start();
    left = (rank + nranks - 1) % nranks;
    right = (rank + 1) % nranks;
    const size_t bytes = (size_t)(PLACE + 2 * nranks) * COUNT * sizeof(int);
    void (*const all[])(void) = {relay,         all_to_all,          two_at_once,
                                 second_stream, between_all_reduces, two_communicators,
                                 third_rank};
    got = device_ints(COUNT, 0);
    other = new_stream();
    MUST(ncclMemAlloc((void **)&buf, bytes));
    MUST(cudaMemset(buf, 0, bytes));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclCommWindowRegister(comm, buf, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]();
        MUST(cudaStreamSynchronize(stream));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    end_window(buf, window);
    MUST(cudaStreamDestroy(other));
    MUST(cudaFree(got));
    finish();
    return 0;
}
