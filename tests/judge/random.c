/*
 * random.c: random operations on random streams, with events, waits, groups, functions
 * and graphs strewn in. Which of them race is worked out here, by listing for each
 * operation all that come before it, and compared with what the judge says.
 *
 *     random FIRST LAST     programs FIRST to LAST; exit code 1 if they disagree anywhere
 *
 * CUDA Runtime API, "Stream synchronization behavior", "Event Management",
 * cudaGraphLaunch; NCCL User Guide, "CUDA Stream Semantics".
 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEGACY, BLOCKING, FREE = 3, STREAMS = 6, EVENTS = 3, BUFFERS = 3, BYTES = 100 };
enum { PINNED = BUFFERS - 1 };               // the last buffer, which the host may use
enum { MOST = 256, ROUNDS = 60, NODES = 4 }; // operations, one bit each in a set

static uint64_t state;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

typedef struct {
    uint64_t bits[MOST / 64];
} set;

static const set none;

static void join(set *into, const set *from) {
    for (int i = 0; i < MOST / 64; i++)
        into->bits[i] |= from->bits[i];
}
static void put(set *into, int operation) {
    into->bits[operation / 64] |= (uint64_t)1 << operation % 64;
}
static bool in(const set *s, int operation) {
    return s->bits[operation / 64] >> operation % 64 & 1;
}

struct use {
    int buffer, from, to; // buffer -1: nothing
    bool write;
};

static struct operation {
    struct use uses[2];
    bool gone; // the memory was told to be in order by other means
} operations[MOST];
static int noperations;
static set before_next[STREAMS]; // what comes before the stream's next operation
static set gone_blocking;        // of blocking streams that are gone
static set recorded[EVENTS];
static set known; // to the host

static set comes_before(int s) {
    set all = before_next[s];
    join(&all, &known);
    if (s == LEGACY) {
        for (int b = BLOCKING; b < FREE; b++)
            join(&all, &before_next[b]);
        join(&all, &gone_blocking);
    } else if (s < FREE) {
        join(&all, &before_next[LEGACY]);
    }
    return all;
}

static bool conflict(const struct use *a, const struct use *b) {
    return a->buffer >= 0 && a->buffer == b->buffer && (a->write || b->write) &&
           a->from < b->to && b->from < a->to;
}

static bool conflicts(const struct operation *a, const struct operation *b) {
    return conflict(&a->uses[0], &b->uses[0]) || conflict(&a->uses[0], &b->uses[1]) ||
           conflict(&a->uses[1], &b->uses[0]) || conflict(&a->uses[1], &b->uses[1]);
}

static const struct use nothing = {-1, 0, 0, false};

/* A new operation that comes after `before`; whether it races. */
static bool append(const set *before, struct use first, struct use second, int *number) {
    struct operation fresh = {.uses = {first, second}};
    bool race = false;
    for (int k = 0; k < noperations; k++)
        race |= !in(before, k) && conflicts(&fresh, &operations[k]);
    *number = noperations;
    operations[noperations++] = fresh;
    return race;
}

/* On a stream. */
static bool queue(int s, struct use first, struct use second) {
    set before = comes_before(s);
    int number;
    bool race = append(&before, first, second, &number);
    before_next[s] = before;
    put(&before_next[s], number);
    return race;
}

static struct judge *j;
static int nreports;
static char newest[4000];
static uint64_t site;

static double tell_time(void *self) {
    (void)self;
    return 0;
}
static void send_to(void *self, int to, const void *data, size_t bytes) {
    (void)self, (void)to, (void)data, (void)bytes;
}
static void say(void *self, const char *text, bool end, uint64_t key) {
    (void)key;
    (void)self, (void)end;
    nreports++;
    snprintf(newest, sizeof newest, "%s", text);
}
static void tell_place(void *self, uint64_t at, char out[JUDGE_PLACE]) {
    (void)self;
    snprintf(out, JUDGE_PLACE, "event %llu", (unsigned long long)at);
}

static int streams[STREAMS], events[EVENTS], comms[2];

static const void *address(int buffer, int offset) {
    return (const void *)(uintptr_t)(0x10000 * (uint64_t)(buffer + 1) + (uint64_t)offset);
}

static struct judge_range range_of(struct use use) {
    return (struct judge_range){address(use.buffer, use.from),
                                (size_t)(use.to - use.from), use.write, true};
}

static struct judge_at here(const char *call) {
    return (struct judge_at){call, ++site};
}

static void tell_op(int s, struct use first, struct use second, const char *call) {
    struct judge_range ranges[2];
    int n = 0;
    if (first.buffer >= 0)
        ranges[n++] = range_of(first);
    if (second.buffer >= 0)
        ranges[n++] = range_of(second);
    judge_op(j, streams[s], ranges, n, n == 2 ? JUDGE_COPY : JUDGE_SET, here(call));
}

static int kind_of(int s) {
    return s == LEGACY ? JUDGE_LEGACY : s < FREE ? JUDGE_BLOCKING : JUDGE_NON_BLOCKING;
}

static void start(void) {
    const struct judge_outside outside = {
        .now = tell_time, .send = send_to, .say = say, .place = tell_place};
    const struct judge_options options = {JUDGE_WARN, 30, false, false};
    j = judge_new(&outside, &options);
    judge_enter(j, 1);
    for (int b = 0; b < BUFFERS; b++) {
        judge_memory_made(j, address(b, 0), BYTES,
                          b == PINNED ? JUDGE_PINNED : JUDGE_DEVICE, 0, -1,
                          here("cudaMalloc"));
        judge_memory_open(j, address(b, 0)); // who wrote first is not the question
    }
    for (int s = 0; s < STREAMS; s++) {
        streams[s] = judge_stream_made(j, kind_of(s), 0, here("cudaStreamCreate"));
        before_next[s] = none;
    }
    for (int e = 0; e < EVENTS; e++) {
        events[e] = judge_event_made(j, here("cudaEventCreate"));
        recorded[e] = none;
    }
    for (int c = 0; c < 2; c++)
        comms[c] =
            judge_comm_made(j, (uint64_t)c + 1, 0, 1, 0, true, here("ncclCommInitRank"));
    known = gone_blocking = none;
    noperations = 0;
}

static int longest;

static struct use part(bool write) {
    int length = 1 + below(longest), from = below(BYTES - length + 1);
    return (struct use){below(BUFFERS), from, from + length, write};
}

/* Two uses of one operation, of different buffers. */
static void two_parts(struct use *to, struct use *from) {
    *to = part(true);
    do
        *from = part(false);
    while (from->buffer == to->buffer);
}

static bool memset_on(int s) {
    struct use to = part(true);
    bool race = queue(s, to, nothing);
    tell_op(s, to, nothing, "cudaMemsetAsync");
    return race;
}

static bool copy_on(int s) {
    struct use to, from;
    two_parts(&to, &from);
    bool race = queue(s, to, from);
    tell_op(s, to, from, "cublasSaxpy");
    return race;
}

static bool read_on(int s) {
    struct use from = part(false);
    bool race = queue(s, from, nothing);
    tell_op(s, from, nothing, "cublasSdot");
    return race;
}

static bool record(int s) {
    int e = below(EVENTS);
    bool race = queue(s, nothing, nothing);
    recorded[e] = before_next[s];
    judge_record(j, events[e], streams[s], here("cudaEventRecord"));
    return race;
}

static bool wait_on(int s) {
    int e = below(EVENTS);
    bool race = queue(s, nothing, nothing);
    join(&before_next[s], &recorded[e]);
    judge_stream_waits(j, streams[s], events[e], here("cudaStreamWaitEvent"));
    return race;
}

/* A wait of the host, in which another thread queues something that is not waited for. */
static bool host_waits(int s) {
    set what = none;
    bool race = false, asks = below(3) == 0, done = below(2);
    int e = below(EVENTS), kind = below(5);
    if (kind < 2) {
        what = s == LEGACY ? comes_before(s) : before_next[s];
        if (asks)
            judge_poll_stream(j, streams[s], done, here("cudaStreamQuery"));
        else
            judge_wait_stream(j, streams[s], here("cudaStreamSynchronize"));
    } else if (kind < 4) {
        what = recorded[e];
        if (asks)
            judge_poll_event(j, events[e], done, here("cudaEventQuery"));
        else
            judge_wait_event(j, events[e], here("cudaEventSynchronize"));
    } else if (below(4) == 0) {
        for (int t = 0; t < STREAMS; t++)
            join(&what, &before_next[t]);
        for (int k = 0; k < noperations; k++)
            put(&what, k); // of streams that are gone, too
        asks = false;
        judge_wait_device(j, below(2) - 1, here("cudaDeviceSynchronize"));
    } else {
        return false;
    }
    if (!asks && below(2)) {
        judge_leave(j);
        judge_enter(j, 2);
        race = memset_on(below(STREAMS));
        judge_leave(j);
        judge_enter(j, 1);
    }
    if (!asks)
        judge_wait_end(j, true);
    if (!asks || done)
        join(&known, &what);
    return race;
}

static bool stream_again(int s) {
    if (s == LEGACY)
        return false;
    if (s < FREE)
        join(&gone_blocking, &before_next[s]);
    before_next[s] = none;
    judge_stream_gone(j, streams[s]);
    streams[s] = judge_stream_made(j, kind_of(s), 0, here("cudaStreamCreate"));
    return false;
}

/* Two calls of one group have raced: from then on the judge need not know all others. */
static bool in_a_group;

/* Up to four calls on two communicators and any streams. If the communicators share one,
 * the one that comes first is first. */
static bool group(void) {
    int n = 1 + below(4), first = noperations, stream[4], comm[4], number;
    set before[2] = {none, none}, after[2];
    bool race = false, shared = false;
    if (n > 1)
        judge_group_starts(j, here("ncclGroupStart"));
    for (int i = 0; i < n; i++) {
        stream[i] = below(STREAMS);
        comm[i] = below(2);
        set more = comes_before(stream[i]);
        join(&before[comm[i]], &more);
        for (int k = 0; k < i; k++)
            shared |= comm[i] != comm[k] && stream[i] == stream[k];
    }
    if (shared)
        join(&before[!comm[0]], &before[comm[0]]);
    for (int i = 0; i < n; i++) {
        struct use to, from;
        two_parts(&to, &from);
        to.to = to.from + (from.to - from.from);
        if (to.to > BYTES) {
            to.from -= to.to - BYTES;
            to.to = BYTES;
        }
        race |= append(&before[comm[i]], to, from, &number);
        struct judge_call call = {.comm = comms[comm[i]],
                                  .stream = streams[stream[i]],
                                  .kind = JUDGE_ALL_REDUCE,
                                  .root = -1,
                                  .count = (size_t)(to.to - to.from),
                                  .type_bytes = 1,
                                  .sendbuff = address(from.buffer, from.from),
                                  .recvbuff = address(to.buffer, to.from),
                                  .at = here("ncclAllReduce")};
        judge_call(j, &call);
    }
    for (int i = first; i < noperations; i++)
        for (int k = first; k < i; k++)
            in_a_group |= conflicts(&operations[i], &operations[k]);
    if (n > 1)
        judge_group_ends(j, here("ncclGroupEnd"));
    after[0] = before[0];
    after[1] = before[1];
    for (int i = 0; i < n; i++)
        put(&after[comm[i]], first + i);
    if (shared)
        join(&after[!comm[0]], &after[comm[0]]);
    for (int i = 0; i < n; i++)
        join(&before_next[stream[i]], &after[comm[i]]);
    return race;
}

/* A function of the program: what comes before it, the host knows when it has begun. */
static bool function(int s) {
    set before = comes_before(s);
    int number = judge_host_function(j, streams[s], here("cudaLaunchHostFunc")), mine;
    bool race = append(&before, nothing, nothing, &mine);
    before_next[s] = before;
    put(&before_next[s], mine);
    judge_leave(j);
    judge_enter(j, 7);
    judge_host_function_begins(j, number);
    join(&known, &before);
    judge_host_function_ends(j, number);
    put(&known, mine);
    judge_leave(j);
    judge_enter(j, 1);
    return race;
}

static bool host_uses(void) {
    struct use use = part(below(2));
    bool race = false;
    use.buffer = PINNED;
    for (int k = 0; k < noperations; k++)
        for (int i = 0; i < 2; i++)
            race |= !in(&known, k) && conflict(&use, &operations[k].uses[i]);
    judge_host_uses(j, address(use.buffer, use.from), (size_t)(use.to - use.from),
                    use.write, false, here("MPI_Send"));
    return race;
}

static struct graph {
    int executable, launches;
    struct use uses[2 * NODES]; // the second half is the second branch's
    bool forked_behind[NODES];  // nodes of the first branch that come before the second
    set end;
} graph;

static void capture(void) {
    int s = streams[FREE], t = streams[FREE + 1],
        fork = judge_event_made(j, here("fork")),
        joined = judge_event_made(j, here("join")), behind = below(NODES);
    graph = (struct graph){.end = none};
    judge_capture_begins(j, s, here("cudaStreamBeginCapture"));
    for (int i = 0; i < NODES; i++) {
        if (i == behind) {
            judge_record(j, fork, s, here("cudaEventRecord"));
            judge_stream_waits(j, t, fork, here("cudaStreamWaitEvent"));
        }
        graph.forked_behind[i] = i < behind;
        graph.uses[i] = part(below(2));
        tell_op(FREE, graph.uses[i], nothing, "captured");
    }
    for (int i = NODES; i < 2 * NODES; i++) {
        graph.uses[i] = part(below(2));
        tell_op(FREE + 1, graph.uses[i], nothing, "captured");
    }
    judge_record(j, joined, t, here("cudaEventRecord"));
    judge_stream_waits(j, s, joined, here("cudaStreamWaitEvent"));
    int number = judge_capture_ends(j, s, true);
    graph.executable = judge_graph_instantiated(j, number, here("cudaGraphInstantiate"));
    judge_graph_gone(j, number);
    judge_event_gone(j, fork);
    judge_event_gone(j, joined);
}

/* In warn mode a race between two lines is said once: of a later launch only that nothing
 * is said which is not so. */
static bool launch(int s, bool *may_be_silent) {
    set base = comes_before(s), branch[2], end;
    bool race = false;
    join(&base, &graph.end);
    branch[0] = branch[1] = end = base;
    for (int i = 0; i < 2 * NODES; i++) {
        int number;
        race |= append(&branch[i / NODES], graph.uses[i], nothing, &number);
        put(&branch[i / NODES], number);
        if (i < NODES && graph.forked_behind[i])
            put(&branch[1], number);
        put(&end, number);
    }
    before_next[s] = graph.end = end;
    judge_graph_launched(j, graph.executable, streams[s], here("cudaGraphLaunch"));
    *may_be_silent = graph.launches++ > 0;
    return race;
}

static long nevents, nraces, disagreements;

static void one_program(int program) {
    state = (uint64_t)program * 7919 + 17;
    for (int i = 0; i < 8; i++)
        below(2);
    longest = below(2) ? 20 : BYTES / 2;
    bool graphs = below(3) == 0, groups = below(2);
    in_a_group = false;
    start();
    if (graphs)
        capture();
    for (int round = 0; round < ROUNDS && noperations + 2 * NODES < MOST; round++) {
        int s = below(STREAMS), what = below(24), reports = nreports;
        bool may_be_silent = false, race;
        race = what < 5               ? memset_on(s)
               : what < 8             ? copy_on(s)
               : what < 9             ? read_on(s)
               : what < 12            ? record(s)
               : what < 16            ? wait_on(s)
               : what < 18            ? host_waits(s)
               : what < 19            ? host_uses()
               : what < 20            ? function(s)
               : what < 21            ? stream_again(s)
               : what < 23 && groups  ? group()
               : what >= 23 && graphs ? launch(s, &may_be_silent)
                                      : memset_on(s);
        bool said = nreports > reports;
        nevents++;
        nraces += race;
        if (said == race && in_a_group)
            break;
        if (said == race || (!said && may_be_silent))
            continue;
        disagreements++;
        printf("# program %d, round %d (%d): %s\n%s", program, round, what,
               race ? "a race that was not said" : "said, and no race: ",
               said ? newest : "");
        break;
    }
    judge_leave(j);
    judge_free(j);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    for (int program = atoi(argv[1]); program <= atoi(argv[2]); program++)
        one_program(program);
    printf("# %ld events, %ld races, %ld disagreements\n", nevents, nraces,
           disagreements);
    // A test in which nothing races, or everything, would be none.
    return disagreements > 0 || nraces < nevents / 5 || nraces > nevents / 2;
}
