/*
 * Random operations on random streams, with events and waits strewn in: which of them
 * race is worked out here, by listing for each operation all that come before it, and
 * said before it is queued. cpu.t compares with what is reported.
 *
 *     NCCL_CPU_CHECK=warn races NUMBER          the program of that number; on stderr
 *         expected: race | expected: none       before each operation
 *
 * A race between the same two calls is said once: so each operation is a call of its own.
 *
 * CUDA Runtime API, "Stream synchronization behavior", "Event Management".
 */
#define TAP_ALONE
#include "chance.h"
#include "tap.h"

enum { LEGACY, BLOCKING, FREE, STREAMS = 4, EVENTS = 3, BUFFERS = 3, BYTES = 100 };
enum { MOST = 60 }; // operations, one bit each in a set

typedef uint64_t bits;

static struct use { // of memory by one operation
    int buffer, from, to;
    bool write;
} uses[MOST][2];
static int nops;
static bits before_next[STREAMS]; // what comes before the stream's next operation
static bits recorded[EVENTS];     // what an event stands for
static bits seen;                 // what the host knows to be done

static bits comes_before(int stream) {
    bits all = before_next[stream] | seen;
    all |= stream == LEGACY ? before_next[BLOCKING] : 0;
    return all | (stream == BLOCKING ? before_next[LEGACY] : 0);
}

/* Appends an operation to a stream; its two uses may be empty. */
static void append(int stream, struct use first, struct use second) {
    bits before = comes_before(stream);
    struct use mine[2] = {first, second};
    bool race = false;
    for (int k = 0; k < nops; k++) {
        for (int i = 0; i < 4 && !(before >> k & 1); i++) {
            const struct use *a = &mine[i % 2], *b = &uses[k][i / 2];
            race |= (a->write || b->write) && a->buffer == b->buffer && a->from < b->to &&
                    b->from < a->to;
        }
    }
    fprintf(stderr, "expected: %s\n", race ? "race" : "none");
    memcpy(uses[nops], mine, sizeof mine);
    before_next[stream] = before | (bits)1 << nops++;
}

static struct use part(bool write) {
    int from = below(BYTES - 20);
    return (struct use){below(BUFFERS), from, from + 20, write};
}

/* The same statement for each of the operations, with a place of its own. */
#define TEN(each, n)                                                                \
    each(n) each(n + 1) each(n + 2) each(n + 3) each(n + 4) each(n + 5) each(n + 6) \
        each(n + 7) each(n + 8) each(n + 9)
#define EACH(each) \
    TEN(each, 0) TEN(each, 10) TEN(each, 20) TEN(each, 30) TEN(each, 40) TEN(each, 50)
#define MEMSET(n)                            \
    case n:                                  \
        CUDA(cudaMemsetAsync(a, 0, 20, on)); \
        break;
#define COPY(n)                                                        \
    case n:                                                            \
        CUDA(cudaMemcpyAsync(a, b, 20, cudaMemcpyDeviceToDevice, on)); \
        break;
#define TO_HOST(n) \
    case n: CUDA(cudaMemcpy(a, b, 20, cudaMemcpyDeviceToHost)); break;

static void set(char *a, cudaStream_t on) {
    switch (nops - 1) { EACH(MEMSET) }
}

static void copy(char *a, const char *b, cudaStream_t on) {
    switch (nops - 1) { EACH(COPY) }
}

static void copy_to_host(char *a, const char *b) {
    switch (nops - 1) { EACH(TO_HOST) }
}

static void one_program(char **buffers) {
    const struct use none = {-1, 0, 0, false};
    cudaStream_t streams[STREAMS] = {cudaStreamLegacy};
    cudaEvent_t events[EVENTS];
    char host[BYTES];
    CUDA(cudaStreamCreate(&streams[BLOCKING]));
    for (int s = FREE; s < STREAMS; s++) {
        CUDA(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    }
    for (int e = 0; e < EVENTS; e++) {
        CUDA(cudaEventCreate(&events[e]));
        recorded[e] = 0;
    }
    memset(before_next, 0, sizeof before_next);
    seen = 0;
    for (nops = 0; nops < MOST;) {
        int s = below(STREAMS), e = below(EVENTS), what = below(10);
        struct use to = part(true), from = part(false);
        if (what < 3) {
            append(s, to, none);
            set(buffers[to.buffer] + to.from, streams[s]);
        } else if (what < 5 && to.buffer != from.buffer) {
            append(s, to, from);
            copy(buffers[to.buffer] + to.from, buffers[from.buffer] + from.from,
                 streams[s]);
        } else if (what == 5) {
            append(s, none, none);
            CUDA(cudaEventRecord(events[e], streams[s]));
            recorded[e] = before_next[s];
        } else if (what < 8 && recorded[e]) { // nothing to wait for, no operation
            append(s, none, none);
            CUDA(cudaStreamWaitEvent(streams[s], events[e], 0));
            before_next[s] |= recorded[e];
        } else if (what == 8) {
            append(LEGACY, from, none);
            copy_to_host(host, buffers[from.buffer] + from.from);
            seen |= before_next[LEGACY];
        } else if (below(2)) {
            CUDA(cudaStreamSynchronize(streams[s]));
            // The default stream's wait is for the blocking streams, too.
            seen |= s == LEGACY ? comes_before(s) : before_next[s];
        } else {
            CUDA(cudaEventSynchronize(events[e]));
            seen |= recorded[e];
        }
    }
    CUDA(cudaDeviceSynchronize());
    for (int e = 0; e < EVENTS; e++) {
        CUDA(cudaEventDestroy(events[e]));
    }
    for (int s = BLOCKING; s < STREAMS; s++) {
        CUDA(cudaStreamDestroy(streams[s]));
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    char *buffers[BUFFERS];
    for (int b = 0; b < BUFFERS; b++) {
        CUDA(cudaMalloc((void **)&buffers[b], BYTES));
        CUDA(cudaMemset(buffers[b], 0, BYTES));
    }
    CUDA(cudaDeviceSynchronize());
    begin_chance(atoi(argv[1]));
    one_program(buffers);
    for (int b = 0; b < BUFFERS; b++) {
        CUDA(cudaFree(buffers[b]));
    }
    point("all calls");
    return finish();
}
