/*
 * puts.c: random puts, reads, signals and waits of two to four ranks, with events, waits
 * of the host, barriers, collectives and messages strewn in. Which put and read no path
 * connects is worked out here. The judge may name no other, and must name many of them.
 *
 *     puts FIRST LAST     programs FIRST to LAST; exit code 1 if it does not
 *
 * NCCL User Guide, "One-sided communication".
 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, STREAMS = 2, PLACES = 3, BYTES = 16, MOST = 512, MESSAGES = 1 << 14 };

static uint64_t state;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static struct node { // an operation, or what the host knows
    enum { OTHER, PUT, READ } what;
    int rank, owner, place;           // who does it, and where
    int after[2 * RANKS + 2], nafter; // comes directly after these
    uint64_t before[MOST / 64];       // all that come before it
} nodes[MOST];
static int nnodes;

static struct rank {
    struct judge *j;
    int number, host, last[STREAMS], recorded; // nodes; -1: none
    int streams[STREAMS], event, comm;
    int sent[RANKS], waited[RANKS]; // to, and for, each
    int signals[RANKS][MOST];       // nodes
} ranks[RANKS];
static int nranks, meetings;

static struct { int node, from, to, n; } waits[MOST]; // for the n-th signal
static int nwaits;

static bool named[MOST][MOST];
static int other_reports;

static struct message {
    int from, to;
    void *data;
    size_t bytes;
} messages[MESSAGES];
static int nmessages;

static double tell_time(void *self) {
    (void)self;
    return 0;
}
static void send_to(void *self, int to, const void *data, size_t bytes) {
    void *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    messages[nmessages++] =
        (struct message){((struct rank *)self)->number, to, copy, bytes};
}
static void tell_place(void *self, uint64_t at, char out[JUDGE_PLACE]) {
    (void)self;
    snprintf(out, JUDGE_PLACE, "node %d", (int)at - 1);
}
static void say(void *self, const char *text, bool end, uint64_t key) {
    (void)self, (void)end, (void)key;
    const char *put = strstr(text, "node "),
               *read = put ? strstr(put + 5, "node ") : NULL;
    if (read && strncmp(text, "race: ncclPutSignal", 19) == 0) {
        named[atoi(put + 5)][atoi(read + 5)] = true;
    } else {
        printf("reported: %s", text);
        other_reports++;
    }
}

/* Some messages arrive, or all; those of one rank to another in order. */
static void deliver(bool all) {
    while (nmessages > 0 && (all || below(3))) {
        int k = all ? 0 : below(nmessages), i = 0;
        while (messages[i].from != messages[k].from || messages[i].to != messages[k].to)
            i++;
        struct message m = messages[i];
        nmessages--;
        memmove(messages + i, messages + i + 1, (size_t)(nmessages - i) * sizeof m);
        judge_enter(ranks[m.to].j, 0);
        judge_receive(ranks[m.to].j, m.from, m.data, m.bytes);
        judge_leave(ranks[m.to].j);
        free(m.data);
    }
}

static struct judge_at at(const char *call, int node) {
    return (struct judge_at){call, (uint64_t)node + 1};
}

static const char *memory(int which) {
    return (const char *)(uintptr_t)(0x100000 * (which + 1));
}

static int node_new(int rank, int what) {
    nodes[nnodes] = (struct node){.what = what, .rank = rank};
    return nnodes++;
}

static void comes_after(int node, int other) {
    if (other >= 0)
        nodes[node].after[nodes[node].nafter++] = other;
}

static int queue(struct rank *r, int s, int what) {
    int node = node_new(r->number, what);
    comes_after(node, r->last[s]);
    comes_after(node, r->host);
    return r->last[s] = node;
}

static void signals(struct rank *r, int s, int peer, bool wait, int place) {
    struct judge_put put = {
        .window = 1, .from = (size_t)place * BYTES, .bytes = place < 0 ? 0 : BYTES};
    int node = queue(r, s, place < 0 ? OTHER : PUT);
    nodes[node].owner = peer;
    nodes[node].place = place;
    const struct judge_signal signal = {
        r->comm, r->streams[s], place < 0 ? NULL : &put,
        at(wait ? "ncclWaitSignal" : "ncclPutSignal", node)};
    judge_op(r->j, r->streams[s], NULL, 0, wait ? JUDGE_AWAITS : JUDGE_PUTS, signal.at);
    judge_signals(r->j, signal, peer, 0, wait);
    if (!wait) {
        r->signals[peer][++r->sent[peer]] = node;
        return;
    }
    waits[nwaits].node = node;
    waits[nwaits].from = peer;
    waits[nwaits].to = r->number;
    waits[nwaits++].n = ++r->waited[peer];
}

static void reads(struct rank *r, int s) {
    int node = queue(r, s, READ), place = below(PLACES);
    nodes[node].owner = r->number;
    nodes[node].place = place;
    struct judge_range range = {memory(r->number) + place * BYTES, BYTES, false, true};
    judge_op(r->j, r->streams[s], &range, 1, JUDGE_COMPUTES, at("cublasSdot", node));
}

static void host_waits(struct rank *r, int s) {
    int node = node_new(r->number, OTHER);
    comes_after(node, r->host);
    comes_after(node, r->last[s]);
    r->host = node;
    judge_wait_stream(r->j, r->streams[s], at("cudaStreamSynchronize", node));
    judge_wait_end(r->j, true);
}

static void waits_mpi(struct rank *r, int node, int peer, enum judge_way way) {
    r->host = node;
    judge_enter(r->j, 1);
    if (peer < 0)
        judge_meets(r->j, (uint64_t)meetings);
    judge_wait_mpi(r->j, NULL, peer, way, at("MPI", node));
    judge_wait_end(r->j, true);
    judge_leave(r->j);
}

static void barrier(bool with_waits) {
    for (int i = 0; i < nranks * STREAMS && with_waits; i++) {
        judge_enter(ranks[i / STREAMS].j, 1);
        host_waits(&ranks[i / STREAMS], i % STREAMS);
        judge_leave(ranks[i / STREAMS].j);
    }
    int node = node_new(-1, OTHER);
    meetings++;
    for (int i = 0; i < nranks; i++)
        comes_after(node, ranks[i].host);
    for (int i = 0; i < nranks; i++)
        waits_mpi(&ranks[i], node, JUDGE_ALL, JUDGE_MEETS);
}

static void bcast(const struct rank *root) {
    int from = root->host;
    meetings++;
    for (int i = 0; i < nranks; i++) {
        int node = node_new(i, OTHER);
        comes_after(node, ranks[i].host);
        comes_after(node, from);
        waits_mpi(&ranks[i], node, JUDGE_ALL, JUDGE_NO_MESSAGE);
    }
}

static void message(struct rank *to, const struct rank *from) {
    int node = node_new(to->number, OTHER);
    comes_after(node, to->host);
    comes_after(node, from->host);
    waits_mpi(to, node, from->number, JUDGE_RECEIVES);
}

static void call(struct rank *r, int s, enum judge_kind kind, int root, int node) {
    const char *buffer = memory(RANKS + r->number) + s * BYTES / STREAMS;
    struct judge_call call = {.comm = r->comm,
                              .stream = r->streams[s],
                              .kind = kind,
                              .root = root,
                              .count = 1,
                              .type_bytes = 1,
                              .sendbuff = kind == JUDGE_RECV ? NULL : buffer,
                              .recvbuff = kind == JUDGE_SEND ? NULL : buffer,
                              .at = at(judge_kind_names[kind], node)};
    judge_enter(r->j, 1);
    judge_call(r->j, &call);
    judge_leave(r->j);
}

static void all_reduce(int s) {
    int node = node_new(-1, OTHER);
    for (int i = 0; i < nranks; i++) {
        comes_after(node, ranks[i].last[s]);
        comes_after(node, ranks[i].host);
        ranks[i].last[s] = node;
    }
    for (int i = 0; i < nranks; i++)
        call(&ranks[i], s, JUDGE_ALL_REDUCE, -1, node);
}

/* From one rank to another, or to all. */
static void sends(struct rank *from, struct rank *to, int s, bool broadcast) {
    int root = queue(from, s, OTHER);
    call(from, s, broadcast ? JUDGE_BROADCAST : JUDGE_SEND,
         broadcast ? from->number : to->number, root);
    for (int i = 0; i < nranks; i++)
        if (&ranks[i] != from && (broadcast || &ranks[i] == to)) {
            int node = queue(&ranks[i], s, OTHER);
            comes_after(node, root);
            call(&ranks[i], s, broadcast ? JUDGE_BROADCAST : JUDGE_RECV, from->number,
                 node);
        }
}

static void step(int streams) {
    int kind = below(100), s = below(streams), p;
    struct rank *r = &ranks[below(nranks)];
    do
        p = below(nranks);
    while (p == r->number);
    if (kind < 3) {
        barrier(kind > 0);
    } else if (kind < 6) {
        all_reduce(s);
    } else if (kind == 6 && below(3) == 0) {
        message(r, &ranks[p]);
    } else if (kind == 7 && below(3) == 0) {
        bcast(r);
    } else if (kind == 8 && below(3) == 0) {
        sends(r, &ranks[p], s, below(2));
    } else {
        judge_enter(r->j, 1);
        if (kind < 40)
            signals(r, s, p, false, below(8) ? below(PLACES) : -1);
        else if (kind < 65 && r->waited[p] < ranks[p].sent[r->number] + !below(4))
            signals(r, s, p, true, -1);
        else if (kind < 85)
            reads(r, s);
        else if (kind < 90)
            host_waits(r, s);
        else if (kind < 95)
            judge_record(r->j, r->event, r->streams[s],
                         at("cudaEventRecord", r->recorded = queue(r, s, OTHER)));
        else {
            int node = queue(r, s, OTHER);
            comes_after(node, r->recorded);
            judge_stream_waits(r->j, r->streams[s], r->event,
                               at("cudaStreamWaitEvent", node));
        }
        judge_leave(r->j);
    }
}

static void start(struct rank *r, int number) {
    const struct judge_outside outside = {
        .self = r, .now = tell_time, .send = send_to, .say = say, .place = tell_place};
    const struct judge_options options = {JUDGE_WARN, 30, false, false};
    const struct judge_at made = at("made", MOST);
    *r = (struct rank){.number = number, .host = -1, .recorded = -1, .last = {-1, -1}};
    r->j = judge_new(&outside, &options);
    judge_world(r->j, number, nranks, "host");
    judge_enter(r->j, 1);
    for (int s = 0; s < STREAMS; s++)
        r->streams[s] = judge_stream_made(r->j, JUDGE_NON_BLOCKING, 0, made);
    for (int m = number; m <= RANKS + number; m += RANKS) { // the window, and a buffer
        struct judge_range all = {memory(m), PLACES * BYTES, true, true};
        judge_memory_made(r->j, all.start, all.bytes, JUDGE_NCCL_MEMORY, 0, -1, made);
        judge_op(r->j, r->streams[0], &all, 1, JUDGE_SET, made);
    }
    judge_wait_stream(r->j, r->streams[0], made);
    judge_wait_end(r->j, true);
    r->event = judge_event_made(r->j, made);
    r->comm = judge_comm_made(r->j, 77, number, nranks, 0, true, made);
    judge_call(r->j, &(struct judge_call){.comm = r->comm,
                                          .stream = -1,
                                          .kind = JUDGE_REGISTER,
                                          .root = -1,
                                          .count = PLACES * BYTES,
                                          .type_bytes = 1,
                                          .at = made});
    judge_window_made(r->j, r->comm, memory(number), PLACES * BYTES, false);
    judge_leave(r->j);
}

static bool is_before(int a, int b) {
    return nodes[b].before[a / 64] >> a % 64 & 1;
}

/* False: some waits for itself, so that the program hangs. */
static bool find_order(void) {
    for (bool more = true; more;) {
        more = false;
        for (int n = 0; n < nnodes; n++)
            for (int k = 0; k < nodes[n].nafter; k++)
                for (int w = 0, other = nodes[n].after[k]; w < MOST / 64; w++) {
                    uint64_t all = nodes[n].before[w] | nodes[other].before[w];
                    if (w == other / 64)
                        all |= (uint64_t)1 << other % 64;
                    more |= all != nodes[n].before[w];
                    nodes[n].before[w] = all;
                }
    }
    for (int n = 0; n < nnodes; n++)
        if (is_before(n, n))
            return false;
    return true;
}

static long races, found, accused;

static void count(int program) {
    for (int p = 0; p < nnodes; p++)
        for (int r = 0; r < nnodes; r++) {
            bool race = nodes[p].what == PUT && nodes[r].what == READ &&
                        nodes[p].owner == nodes[r].owner &&
                        nodes[p].place == nodes[r].place && !is_before(p, r) &&
                        !is_before(r, p);
            races += race;
            found += race && named[p][r];
            if (named[p][r] && !race) {
                printf("program %d: put %d and read %d are in order\n", program, p, r);
                accused++;
            }
        }
}

static void play(int program) {
    state = (uint64_t)program * 2654435761u + 12345;
    nnodes = nmessages = nwaits = meetings = 0;
    memset(named, 0, sizeof named);
    nranks = 2 + below(RANKS - 1);
    int streams = 1 + below(STREAMS), steps = 20 + below(120);
    for (int i = 0; i < nranks; i++)
        start(&ranks[i], i);
    for (int k = 0; k < steps && nnodes < MOST - 100; k++) {
        step(streams);
        deliver(false);
    }
    for (int i = 0; i < nranks * nranks; i++) {
        struct rank *from = &ranks[i / nranks], *to = &ranks[i % nranks];
        judge_enter(from->j, 1);
        while (from->sent[to->number] < to->waited[from->number])
            signals(from, 0, to->number, false, -1);
        judge_leave(from->j);
    }
    deliver(true);
    for (int w = 0; w < nwaits; w++)
        comes_after(waits[w].node, ranks[waits[w].from].signals[waits[w].to][waits[w].n]);
    for (int i = 0; i < nranks; i++) {
        judge_enter(ranks[i].j, 0);
        judge_look(ranks[i].j);
        judge_leave(ranks[i].j);
        deliver(true);
    }
    if (find_order())
        count(program);
    for (int i = 0; i < nranks; i++)
        judge_free(ranks[i].j);
}

int main(int argc, char **argv) {
    int first = argc > 1 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : first;
    for (int program = first; program <= last; program++)
        play(program);
    printf("%ld races, %ld named, %ld in order and named, %d other reports\n", races,
           found, accused, other_reports);
    return accused > 0 || other_reports > 0 || found < races / 5;
}
