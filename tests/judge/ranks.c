/*
 * ranks.c: random programs of several ranks, right ones and ones with one mistake, told
 * as events to the judges of all ranks. Whether a program gets stuck is worked out here,
 * by carrying it out.
 *
 *     ranks FIRST LAST     programs FIRST to LAST, each right and with each mistake; exit
 * code 1 if a right one is accused, or a wrong one is not told, or told otherwise ranks N
 * MISTAKE      one of them, with what is said
 *
 * A right program is made in one order for all ranks, of calls on several communicators
 * and streams, groups, events, waits and messages of MPI: each rank does its part of it
 * in that order, so it cannot get stuck. When each rank does it is chance.
 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = 8,
    COMMS = 4,
    STREAMS = 3,
    EVENTS = 2,
    STEPS = 600,
    OPS = 4000,
    DEPS = 64
};

enum mistake {
    NONE,
    LEFT_OUT,
    COUNT,
    ROOT,
    COMMUNICATOR,
    ORDER,
    TYPE,
    ONCE_MORE,
    MISTAKES
};
static const char *const mistakes[] = {"none",         "left out", "count", "root",
                                       "communicator", "order",    "type",  "once more"};

static uint64_t state;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static bool one_in(int n) {
    return below(n) == 0;
}

enum what {
    CALL,
    GROUP,
    END,
    LAUNCHED, // waits inside ncclGroupEnd until all have called
    SYNC,
    DEVICE,
    RECORD,
    FOLLOW,
    MPI,
    MESSAGE,
    CAPTURE,
    CAPTURED,
    LAUNCH,
    FUNCTION,
    DESTROY,
    FINISH,
    PAUSE
};

struct step {
    enum what what;
    int comm, stream, event;
    int kind, root, type, redop, count; // of a call
    int number;                         // of a wait in MPI, the same on all its ranks
    unsigned with;                      // those ranks, a bit each
    int action;
};

struct comm {
    int n, world[RANKS], rank[RANKS]; // rank: in the communicator, -1
};

static int nranks, ncomms, nsteps[RANKS];
static struct comm comms[COMMS];
static struct step steps[RANKS][STEPS];
static int nactions;

static void add(int rank, struct step step) {
    step.action = nactions;
    steps[rank][nsteps[rank]++] = step;
}

static void make_comms(void) {
    ncomms = 1 + below(COMMS);
    for (int c = 0; c < ncomms; c++) {
        struct comm *comm = &comms[c];
        comm->n = 0;
        for (int r = 0; r < nranks; r++) {
            comm->rank[r] = -1;
            if (c < 2 || one_in(2))
                comm->world[comm->n++] = r;
        }
        if (comm->n < 2) {
            comm->n = 2;
            comm->world[0] = 0;
            comm->world[1] = 1;
        }
        for (int i = comm->n - 1; i > 0 && c > 0; i--) { // in any order
            int k = below(i + 1), other = comm->world[i];
            comm->world[i] = comm->world[k];
            comm->world[k] = other;
        }
        for (int i = 0; i < comm->n; i++)
            comm->rank[comm->world[i]] = i;
    }
}

static struct step a_collective(int c) {
    static const int kinds[] = {JUDGE_BROADCAST, JUDGE_ALL_REDUCE, JUDGE_REDUCE,
                                JUDGE_ALL_GATHER};
    struct step step = {.what = CALL, .comm = c, .kind = kinds[below(4)]};
    step.count = 1 + below(8);
    step.type = one_in(2) ? 2 : 7;
    step.redop = below(3);
    step.root = step.kind == JUDGE_BROADCAST || step.kind == JUDGE_REDUCE
                    ? below(comms[c].n)
                    : -1;
    if (step.kind == JUDGE_BROADCAST || step.kind == JUDGE_ALL_GATHER)
        step.redop = 0;
    return step;
}

static void add_collective(int c, struct step step) {
    for (int i = 0; i < comms[c].n; i++) {
        step.stream = below(STREAMS);
        add(comms[c].world[i], step);
    }
}

/* A send from one to another, each alone or in a group. */
static void add_pair(int c) {
    int from = below(comms[c].n), to = (from + 1 + below(comms[c].n - 1)) % comms[c].n;
    struct step step = {.what = CALL, .comm = c, .count = 1 + below(8), .type = 2};
    for (int side = 0; side < 2; side++) {
        int world = comms[c].world[side ? to : from];
        step.kind = side ? JUDGE_RECV : JUDGE_SEND;
        step.root = side ? from : to;
        step.stream = below(STREAMS);
        bool grouped = one_in(2);
        if (grouped)
            add(world, (struct step){.what = GROUP});
        add(world, step);
        if (grouped)
            add(world, (struct step){.what = END});
        if (grouped && one_in(3))
            add(world, (struct step){.what = LAUNCHED});
    }
}

/* Everybody sends to the next and receives from the one before; and perhaps adds
 * something up. */
static void add_ring(int c) {
    struct step sum = a_collective(c), step = {.what = CALL, .comm = c, .type = 2};
    bool with_sum = one_in(2), self = one_in(3);
    step.count = 1 + below(8);
    for (int i = 0; i < comms[c].n; i++) {
        int world = comms[c].world[i];
        add(world, (struct step){.what = GROUP});
        for (int k = 0; k < 2; k++) {
            bool send = (k == 0) == (below(2) == 0);
            // Both, in any order: the second is what the first was not.
            if (k == 1)
                send = steps[world][nsteps[world] - 1].kind == JUDGE_RECV;
            step.kind = send ? JUDGE_SEND : JUDGE_RECV;
            step.root = (i + (send ? 1 : comms[c].n - 1)) % comms[c].n;
            step.stream = below(STREAMS);
            add(world, step);
        }
        for (int k = 0; k < 2 && self; k++) {
            step.kind = k ? JUDGE_RECV : JUDGE_SEND;
            step.root = i;
            add(world, step);
        }
        if (with_sum) {
            sum.stream = step.stream;
            add(world, sum);
        }
        add(world, (struct step){.what = END});
        if (one_in(3))
            add(world, (struct step){.what = LAUNCHED});
    }
}

/* Calls that all capture and launch, perhaps more than once, each on a stream of its own.
 */
static void add_graph(int c) {
    struct step calls[3];
    int n = 1 + below(3), times = 1 + below(3);
    for (int k = 0; k < n; k++)
        calls[k] = a_collective(c);
    for (int i = 0; i < comms[c].n; i++) {
        int world = comms[c].world[i], stream = below(STREAMS);
        add(world, (struct step){.what = CAPTURE, .stream = stream});
        for (int k = 0; k < n; k++) {
            calls[k].stream = stream;
            add(world, calls[k]);
        }
        add(world, (struct step){.what = CAPTURED, .stream = stream});
        for (int k = 0; k < times; k++)
            add(world, (struct step){.what = LAUNCH, .stream = below(STREAMS)});
    }
}

/* Calls on several communicators in one group, in one order. */
static void add_group(void) {
    int n = 2 + below(3);
    struct step calls[5];
    for (int k = 0; k < n; k++)
        calls[k] = a_collective(below(ncomms));
    for (int r = 0; r < nranks; r++) {
        bool any = false;
        for (int k = 0; k < n; k++)
            any |= comms[calls[k].comm].rank[r] >= 0;
        if (!any)
            continue;
        add(r, (struct step){.what = GROUP});
        for (int k = 0; k < n; k++) {
            calls[k].stream = below(STREAMS);
            if (comms[calls[k].comm].rank[r] >= 0)
                add(r, calls[k]);
        }
        add(r, (struct step){.what = END});
    }
}

static void add_wait(int rank) {
    switch (below(4)) {
    case 0: add(rank, (struct step){.what = SYNC, .stream = below(STREAMS)}); break;
    case 1: add(rank, (struct step){.what = DEVICE}); break;
    case 2:
        add(rank, (struct step){
                      .what = RECORD, .stream = below(STREAMS), .event = below(EVENTS)});
        break;
    default:
        add(rank, (struct step){
                      .what = FOLLOW, .stream = below(STREAMS), .event = below(EVENTS)});
    }
}

static void add_mpi(void) {
    struct step step = {.what = MPI, .number = nactions};
    for (int r = 0; r < nranks; r++)
        step.with |= (unsigned)(one_in(2) || nranks == 2) << r;
    for (int r = 0; r < nranks; r++)
        if (step.with >> r & 1)
            add(r, step);
}

/* From one to another; who sends does not wait. */
static void add_message(void) {
    int from = below(nranks), to = (from + 1 + below(nranks - 1)) % nranks;
    struct step step = {.what = MESSAGE, .number = nactions, .root = from};
    add(from, step);
    add(to, step);
}

static void make_program(void) {
    memset(nsteps, 0, sizeof nsteps);
    nranks = 2 + below(RANKS - 1);
    make_comms();
    int actions = 5 + below(25);
    for (nactions = 0; nactions < actions; nactions++) {
        int c = below(ncomms);
        switch (below(12)) {
        case 0:
        case 1:
        case 2: add_collective(c, a_collective(c)); break;
        case 3: add_pair(c); break;
        case 4: add_ring(c); break;
        case 5: add_group(); break;
        case 6: add_mpi(); break;
        case 7: add(below(nranks), (struct step){.what = PAUSE}); break;
        case 8: add_graph(c); break;
        case 9: add_message(); break;
        case 10:
            add(below(nranks), (struct step){.what = FUNCTION, .stream = below(STREAMS)});
            break;
        default: add_wait(below(nranks));
        }
    }
    for (int r = 0; r < nranks; r++) {
        add(r, (struct step){.what = DEVICE});
        for (int c = 0; c < ncomms; c++)
            if (comms[c].rank[r] >= 0)
                add(r, (struct step){.what = DESTROY, .comm = c});
        add(r, (struct step){.what = FINISH});
    }
}

static int wrong_rank;

static bool same_call(const struct step *a, const struct step *b) {
    return a->comm == b->comm && a->kind == b->kind && a->count == b->count &&
           a->type == b->type && a->redop == b->redop && a->root == b->root;
}

static bool collective(const struct step *s) {
    return s->what == CALL && s->kind != JUDGE_SEND && s->kind != JUDGE_RECV;
}

static int other_comm(int rank, const struct step *s) {
    for (int c = 0; c < ncomms; c++)
        if (c != s->comm && comms[c].rank[rank] >= 0 && s->root < comms[c].n)
            return c;
    return -1;
}

static void insert(int rank, int at, struct step step) {
    memmove(&steps[rank][at + 1], &steps[rank][at],
            (size_t)(nsteps[rank]++ - at) * sizeof step);
    steps[rank][at] = step;
}

static void take_out(int rank, int at) {
    memmove(&steps[rank][at], &steps[rank][at + 1],
            (size_t)(--nsteps[rank] - at) * sizeof steps[0][0]);
}

/* Whether it could be made there. */
static bool make_mistake(enum mistake mistake) {
    for (int tries = 0; tries < 200; tries++) {
        int r = wrong_rank = below(nranks), i = below(nsteps[r]), c;
        struct step *s = &steps[r][i], *next = s + 1;
        if (s->what != CALL)
            continue;
        switch (mistake) {
        case LEFT_OUT: take_out(r, i); return true;
        case COUNT: s->count++; return true;
        case ROOT:
            if (!collective(s) || s->root < 0)
                break;
            s->root = (s->root + 1) % comms[s->comm].n;
            return true;
        case COMMUNICATOR:
            c = collective(s) ? other_comm(r, s) : -1;
            if (c < 0)
                break;
            s->comm = c;
            return true;
        case ORDER:
            if (i + 1 == nsteps[r] || !collective(s) || !collective(next) ||
                same_call(s, next))
                break;
            struct step first = *s;
            *s = *next;
            *next = first;
            return true;
        case TYPE: s->type = 9 - s->type; return true;
        case ONCE_MORE: insert(r, i, *s); return true;
        default: break;
        }
    }
    return false;
}

struct deps {
    int n, at[DEPS];
};

struct op {
    int rank, comm, seq, from,
        to; // from, to: of a send or receive, -1; comm: -1: a function
    int function;
    struct deps after;
    bool begun, done;
};

static struct op ops[OPS];
static int nops, open_ops[OPS], nopen;

static struct rank {
    struct judge *judge;
    int at; // its next step
    bool waits;
    int streams[STREAMS], events[EVENTS], comms[COMMS];
    struct deps stream[STREAMS], event[EVENTS], comm[COMMS], waits_for, launched;
    int seq[COMMS], sent[COMMS][RANKS], received[COMMS][RANKS];
    bool left[COMMS];
    int group; // -1: none; the first of its calls in `held`
    struct step held[64];
    int nheld, in_mpi, leaving;
    unsigned whom; // it waits for in MPI
    bool captures, launching;
    int executable, function, last_ops, nlast; // last_ops: the first of those queued last
    uint64_t bytes;                            // of the buffer that are used
} ranks[RANKS];

static bool here_in_mpi[RANKS][STEPS], sent[STEPS];

static void depend(struct deps *on, int op) {
    for (int i = 0; i < on->n; i++)
        if (on->at[i] == op)
            return;
    // What is done need not be kept.
    int n = 0;
    for (int i = 0; i < on->n; i++)
        if (!ops[on->at[i]].done)
            on->at[n++] = on->at[i];
    on->n = n;
    if (n == DEPS)
        abort();
    on->at[on->n++] = op;
}

static void depend_all(struct deps *on, const struct deps *more) {
    for (int i = 0; i < more->n; i++)
        depend(on, more->at[i]);
}

static bool all_done(const struct deps *deps) {
    for (int i = 0; i < deps->n; i++)
        if (!ops[deps->at[i]].done)
            return false;
    return true;
}

static bool meets(const struct op *a, const struct op *b) {
    return a->comm >= 0 && a->comm == b->comm && a->seq == b->seq && a->from == b->from &&
           a->to == b->to;
}

static void carry_on(void) {
    for (bool news = true; news;) {
        news = false;
        for (int i = 0; i < nopen; i++) {
            struct op *op = &ops[open_ops[i]];
            if (!op->begun && all_done(&op->after))
                op->begun = news = true;
        }
        for (int i = 0; i < nopen; i++) {
            struct op *op = &ops[open_ops[i]];
            int here = 0;
            if (op->comm < 0)
                continue; // ends when it has been run
            for (int k = 0; k < nopen && op->begun; k++)
                here += ops[open_ops[k]].begun && meets(op, &ops[open_ops[k]]);
            if (here < (op->from >= 0 ? 2 : comms[op->comm].n))
                continue;
            struct op like = *op;
            int n = 0;
            for (int k = 0; k < nopen; k++) {
                struct op *other = &ops[open_ops[k]];
                if (meets(&like, other))
                    other->done = news = true;
                else
                    open_ops[n++] = open_ops[k];
            }
            nopen = n;
            break;
        }
    }
}

/* A group's operations on one communicator come after what all of their streams hold. */
static void queue_calls(int r, const struct step *calls, int n) {
    struct rank *rank = &ranks[r];
    rank->last_ops = nops;
    rank->nlast = n;
    for (int c = 0; c < ncomms; c++) {
        struct deps before = {0}, after = {0};
        bool any = false;
        for (int i = 0; i < n; i++)
            if (calls[i].comm == c) {
                depend_all(&before, &rank->stream[calls[i].stream]);
                any = true;
            }
        if (!any)
            continue;
        depend_all(&before, &rank->comm[c]);
        // Streams that calls on another communicator of the group have too do not come
        // after those.
        for (int i = 0; i < n; i++) {
            const struct step *s = &calls[i];
            if (s->comm != c)
                continue;
            struct op *op = &ops[nops];
            *op =
                (struct op){.rank = r, .comm = c, .from = -1, .to = -1, .after = before};
            int me = comms[c].rank[r];
            if (s->kind == JUDGE_SEND) {
                op->from = me;
                op->to = s->root;
                op->seq = ++rank->sent[c][s->root];
            } else if (s->kind == JUDGE_RECV) {
                op->from = s->root;
                op->to = me;
                op->seq = ++rank->received[c][s->root];
            } else {
                op->seq = ++rank->seq[c];
            }
            depend(&after, nops);
            open_ops[nopen++] = nops++;
        }
        rank->comm[c] = after;
    }
    // Only when all of the group have looked at what was there before.
    bool joined[STREAMS] = {false};
    for (int i = 0; i < n; i++)
        if (!joined[calls[i].stream]) {
            joined[calls[i].stream] = true;
            rank->stream[calls[i].stream].n = 0;
        }
    for (int i = 0; i < n; i++)
        depend_all(&rank->stream[calls[i].stream], &rank->comm[calls[i].comm]);
    carry_on();
}

struct message {
    int from, to;
    size_t bytes;
    char *data;
};

static double now;
static struct message *link;
static size_t nlink, link_size;
static int nsaid;
static bool over, verbose;
static char said[4000];

static double tell_time(void *self) {
    (void)self;
    return now;
}

static void send_to(void *self, int to, const void *data, size_t bytes) {
    if (nlink == link_size) {
        link_size = link_size ? 2 * link_size : 64;
        link = realloc(link, link_size * sizeof *link);
    }
    link[nlink] = (struct message){(int)((struct rank *)self - ranks), to, bytes,
                                   malloc(bytes + 1)};
    memcpy(link[nlink++].data, data, bytes);
}

static void say(void *self, const char *text, bool end, uint64_t key) {
    (void)key;
    (void)self;
    if (nsaid++ == 0)
        snprintf(said, sizeof said, "%s", text);
    over |= end;
    if (verbose)
        printf("at %.3f s: %s", now, text);
}

static void tell_place(void *self, uint64_t site, char out[JUDGE_PLACE]) {
    (void)self;
    snprintf(out, JUDGE_PLACE, "action %llu", (unsigned long long)site);
}

static int tell_mpi_ranks(void *self, const void *whom, int *world, int most) {
    int n = 0;
    (void)self;
    for (int r = 0; r < nranks && n < most; r++)
        if (*(const unsigned *)whom >> r & 1)
            world[n++] = r;
    return n;
}

static void deliver(void) {
    for (size_t m = 0; m < nlink && !over; m++) {
        struct message message = link[m];
        struct judge *judge = ranks[message.to].judge;
        judge_enter(judge, 0);
        judge_receive(judge, message.from, message.data, message.bytes);
        judge_leave(judge);
    }
    for (size_t m = 0; m < nlink; m++)
        free(link[m].data);
    nlink = 0;
}

static void pass(double seconds) {
    for (double until = now + seconds; now < until && !over;) {
        now += 0.1;
        for (int r = 0; r < nranks && !over; r++) {
            judge_enter(ranks[r].judge, 0);
            judge_look(ranks[r].judge);
            judge_leave(ranks[r].judge);
        }
        deliver();
    }
}

static struct judge_at at(const char *call, const struct step *s) {
    return (struct judge_at){call, (uint64_t)s->action + 1};
}

static void start(void) {
    const struct judge_options options = {JUDGE_ON, 30, false, false};
    nops = nopen = nsaid = 0;
    over = false;
    now = 1000;
    memset(here_in_mpi, 0, sizeof here_in_mpi);
    memset(sent, 0, sizeof sent);
    for (int r = 0; r < nranks; r++) {
        struct rank *rank = &ranks[r];
        const struct judge_outside outside = {.self = rank,
                                              .now = tell_time,
                                              .send = send_to,
                                              .say = say,
                                              .place = tell_place,
                                              .mpi_ranks = tell_mpi_ranks};
        *rank = (struct rank){.in_mpi = -1, .leaving = -1, .group = -1};
        rank->judge = judge_new(&outside, &options);
        judge_world(rank->judge, r, nranks, "host");
        judge_enter(rank->judge, 1);
        judge_memory_made(rank->judge, (void *)0x100000, 1 << 30, JUDGE_PINNED, 0, -1,
                          (struct judge_at){"cudaMallocHost", 1});
        for (int s = 0; s < STREAMS; s++)
            rank->streams[s] =
                judge_stream_made(rank->judge, JUDGE_NON_BLOCKING, 0,
                                  (struct judge_at){"cudaStreamCreate", 1});
        for (int e = 0; e < EVENTS; e++)
            rank->events[e] =
                judge_event_made(rank->judge, (struct judge_at){"cudaEventCreate", 1});
        for (int c = 0; c < ncomms; c++) {
            struct judge_join join = {.id = state * 2 + 1 + (uint64_t)c,
                                      .rank = comms[c].rank[r],
                                      .nranks = comms[c].n,
                                      .at = {"ncclCommInitRank", 1}};
            snprintf(join.bus_id, sizeof join.bus_id, "%d", r);
            if (join.rank < 0)
                continue;
            judge_joins(rank->judge, &join);
            rank->comms[c] = judge_comm_made(rank->judge, join.id, join.rank, join.nranks,
                                             0, true, join.at);
        }
        judge_leave(rank->judge);
    }
}

static void stop(void) {
    for (int r = 0; r < nranks; r++)
        judge_free(ranks[r].judge);
    for (size_t m = 0; m < nlink; m++)
        free(link[m].data);
    nlink = 0;
}

static void tell_call(int r, const struct step *s) {
    static const size_t type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
    struct rank *rank = &ranks[r];
    struct judge_call call = {.comm = rank->comms[s->comm],
                              .stream = rank->streams[s->stream],
                              .kind = (enum judge_kind)s->kind,
                              .type = s->type,
                              .redop = s->redop,
                              .root = s->root,
                              .count = (size_t)s->count,
                              .type_bytes = type_bytes[s->type],
                              .at = at(judge_kind_names[s->kind], s)};
    char *buffer = (char *)0x100000 + rank->bytes;
    rank->bytes += 2048;
    call.sendbuff = s->kind == JUDGE_RECV ? NULL : buffer;
    call.recvbuff = s->kind == JUDGE_SEND ? NULL : buffer + 1024;
    judge_call(rank->judge, &call);
}

static bool everybody_left(int c) {
    for (int i = 0; i < comms[c].n; i++)
        if (!ranks[comms[c].world[i]].left[c])
            return false;
    return true;
}

static bool everybody_in_mpi(const struct step *s) {
    for (int r = 0; r < nranks; r++)
        if (s->with >> r & 1 && !here_in_mpi[r][s->number])
            return false;
    return true;
}

/* Whether all that the rank's last group meets has been called. */
static bool everybody_called(const struct rank *rank) {
    for (int i = rank->last_ops; i < rank->last_ops + rank->nlast; i++) {
        int here = 0;
        for (int k = 0; k < nops; k++)
            here += meets(&ops[i], &ops[k]);
        if (here < (ops[i].from >= 0 ? 2 : comms[ops[i].comm].n))
            return false;
    }
    return true;
}

/* Whether what the rank waits for has happened. */
static bool happened(int r) {
    const struct rank *rank = &ranks[r];
    const struct step *mpi = rank->in_mpi >= 0 ? &steps[r][rank->in_mpi] : NULL;
    if (mpi)
        return mpi->what == MESSAGE ? sent[mpi->number] : everybody_in_mpi(mpi);
    if (rank->launching)
        return everybody_called(rank);
    if (rank->leaving >= 0)
        return everybody_left(rank->leaving);
    return all_done(&rank->waits_for);
}

static void pause(double seconds);

static void step(int r) {
    struct rank *rank = &ranks[r];
    struct judge *judge = rank->judge;
    judge_enter(judge, 1);
    now += 1e-6 * below(1000);
    if (rank->waits) {
        judge_wait_end(judge, true);
        rank->waits = rank->launching = false;
        rank->in_mpi = rank->leaving = -1;
        rank->waits_for.n = 0;
        judge_leave(judge);
        return;
    }
    const struct step *s = &steps[r][rank->at++];
    switch (s->what) {
    case CALL:
        tell_call(r, s);
        if (rank->group >= 0 || rank->captures)
            rank->held[rank->nheld++] = *s;
        else
            queue_calls(r, s, 1);
        break;
    case GROUP:
        judge_group_starts(judge, at("ncclGroupStart", s));
        rank->group = rank->nheld = 0;
        break;
    case END:
        judge_group_ends(judge, at("ncclGroupEnd", s));
        queue_calls(r, rank->held, rank->nheld);
        rank->group = -1;
        break;
    case LAUNCHED:
        judge_wait_launch(judge, at("ncclGroupEnd", s));
        rank->waits = rank->launching = true;
        break;
    case CAPTURE:
        judge_capture_begins(judge, rank->streams[s->stream],
                             at("cudaStreamBeginCapture", s));
        rank->captures = true;
        rank->nheld = 0;
        break;
    case CAPTURED: {
        int graph = judge_capture_ends(judge, rank->streams[s->stream], true);
        judge_executable_gone(judge, rank->executable);
        rank->executable =
            judge_graph_instantiated(judge, graph, at("cudaGraphInstantiate", s));
        judge_graph_gone(judge, graph);
        rank->captures = false;
        rank->launched.n = 0;
        break;
    }
    case LAUNCH:
        judge_graph_launched(judge, rank->executable, rank->streams[s->stream],
                             at("cudaGraphLaunch", s));
        // "ordered behind any previous launches" of it
        depend_all(&rank->stream[s->stream], &rank->launched);
        for (int i = 0; i < rank->nheld; i++) {
            struct step call = rank->held[i];
            call.stream = s->stream;
            queue_calls(r, &call, 1);
        }
        rank->launched = rank->stream[s->stream];
        break;
    case FUNCTION: {
        struct op *op = &ops[nops];
        *op = (struct op){.rank = r, .comm = -1, .after = rank->stream[s->stream]};
        op->function = judge_host_function(judge, rank->streams[s->stream],
                                           at("cudaLaunchHostFunc", s));
        rank->stream[s->stream].n = 0;
        depend(&rank->stream[s->stream], nops);
        open_ops[nopen++] = nops++;
        carry_on();
        break;
    }
    case MESSAGE:
        if (r == s->root) {
            sent[s->number] = true;
            break;
        }
        rank->whom = 1u << s->root;
        judge_wait_mpi(judge, &rank->whom, s->root, JUDGE_RECEIVES, at("MPI_Recv", s));
        rank->in_mpi = rank->at - 1;
        rank->waits = true;
        break;
    case SYNC:
        judge_wait_stream(judge, rank->streams[s->stream],
                          at("cudaStreamSynchronize", s));
        depend_all(&rank->waits_for, &rank->stream[s->stream]);
        rank->waits = true;
        break;
    case DEVICE:
        judge_wait_device(judge, 0, at("cudaDeviceSynchronize", s));
        for (int i = 0; i < STREAMS; i++)
            depend_all(&rank->waits_for, &rank->stream[i]);
        rank->waits = true;
        break;
    case RECORD:
        judge_record(judge, rank->events[s->event], rank->streams[s->stream],
                     at("cudaEventRecord", s));
        rank->event[s->event] = rank->stream[s->stream];
        break;
    case FOLLOW:
        judge_stream_waits(judge, rank->streams[s->stream], rank->events[s->event],
                           at("cudaStreamWaitEvent", s));
        depend_all(&rank->stream[s->stream], &rank->event[s->event]);
        break;
    case MPI:
        judge_wait_mpi(judge, &s->with, JUDGE_ALL, JUDGE_NO_MESSAGE,
                       at("MPI_Barrier", s));
        here_in_mpi[r][s->number] = true;
        rank->in_mpi = rank->at - 1;
        rank->waits = true;
        break;
    case DESTROY:
        // The last launch was before; no graph may outlive its communicator.
        judge_executable_gone(judge, rank->executable);
        rank->executable = -1;
        judge_comm_ends(judge, rank->comms[s->comm], JUDGE_DESTROYED,
                        at("ncclCommDestroy", s));
        judge_wait_leave(judge, rank->comms[s->comm], at("ncclCommDestroy", s));
        rank->left[s->comm] = true;
        rank->leaving = s->comm;
        rank->waits = true;
        break;
    case FINISH: judge_finishes(judge, JUDGE_FINALIZES, at("MPI_Finalize", s)); break;
    case PAUSE: break;
    }
    judge_leave(judge);
    if (s->what == PAUSE && one_in(3))
        pause(1 + below(40));
}

/* While time passes, nobody waits for what has happened. */
static void pause(double seconds) {
    for (int r = 0; r < nranks; r++)
        if (ranks[r].waits && happened(r))
            step(r);
    pass(seconds);
}

/* Functions run on a thread of their own, as soon as their turn has come, or later. */
static void run_functions(bool all) {
    for (int i = 0; i < nopen && !over; i++) {
        struct op *op = &ops[open_ops[i]];
        if (op->comm >= 0 || !op->begun || !(all || one_in(2)))
            continue;
        judge_enter(ranks[op->rank].judge, 9);
        judge_host_function_begins(ranks[op->rank].judge, op->function);
        judge_host_function_ends(ranks[op->rank].judge, op->function);
        judge_thread_gone(ranks[op->rank].judge, 9);
        judge_leave(ranks[op->rank].judge);
        op->done = true;
        open_ops[i] = open_ops[--nopen];
        carry_on();
        i = -1;
    }
}

/* Until all have finished; false: it got stuck, or was ended. */
static bool play(void) {
    start();
    while (!over) {
        int can[RANKS], n = 0, finished = 0;
        for (int r = 0; r < nranks; r++) {
            if (ranks[r].waits ? happened(r) : ranks[r].at < nsteps[r])
                can[n++] = r;
            finished += !ranks[r].waits && ranks[r].at == nsteps[r];
        }
        if (finished == nranks) {
            pass(1);
            return !over;
        }
        run_functions(n == 0);
        if (n == 0) {
            for (int r = 0; r < nranks; r++)
                n += ranks[r].waits && happened(r);
            if (n > 0)
                continue;
            pass(3);
            // Of a rank in MPI nobody knows all that it does; in the end all are silent.
            for (int r = 0; r < nranks; r++)
                n += ranks[r].in_mpi >= 0;
            if (n > 0)
                pass(40);
            return false;
        }
        // Somebody for a while.
        int r = can[below(n)];
        for (int k = below(8); k >= 0 && !over; k--)
            if (ranks[r].waits ? happened(r) : ranks[r].at < nsteps[r])
                step(r);
        if (one_in(40))
            pause(0.05 + 0.1 * below(12));
        else if (one_in(4))
            deliver();
    }
    return false;
}

static bool names(const char *text, int rank) {
    for (const char *at = strstr(text, "rank"); at; at = strstr(at + 1, "rank")) {
        at += strncmp(at, "ranks", 5) == 0 ? 5 : 4;
        while (*at == ' ' || *at == ',') {
            char *end;
            long number = strtol(at + 1, &end, 10);
            if (end == at + 1)
                break;
            if (number == rank)
                return true;
            at = *end == ',' ? end + 1 : end;
            if (*end != ',')
                break;
        }
    }
    return false;
}

static const char *judge_of(enum mistake mistake, bool finished) {
    static const char *const ways[] = {"missing: ", "deadlock: ", "mismatch: "};
    bool way = false;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        way |= strncmp(strstr(said, ": ") ? said : "", "NCCL CHECK: ", 12) == 0
                   ? strncmp(said + 12, ways[i], strlen(ways[i])) == 0
                   : strncmp(said, ways[i], strlen(ways[i])) == 0;
    if (mistake == NONE)
        return nsaid || !finished ? "a right program is accused" : NULL;
    if (nsaid > 1)
        return "more than one report";
    // Two communicators in a different order may go well.
    if (nsaid == 0)
        return finished && mistake == ORDER ? NULL : "no report";
    return !way                       ? "told otherwise"
           : !names(said, wrong_rank) ? "the rank is not named"
                                      : NULL;
}

static int try(int number, enum mistake mistake) {
    state = (uint64_t)number * 2654435761u + 17;
    for (int i = 0; i < 5; i++)
        below(2);
    make_program();
    if (mistake != NONE && !make_mistake(mistake))
        return 0;
    bool finished = play();
    const char *wrong = judge_of(mistake, finished);
    if (wrong)
        printf("# program %d, mistake: %s (rank %d of %d): %s%s%s", number,
               mistakes[mistake], wrong_rank, nranks, wrong, nsaid ? ":\n" : "\n",
               nsaid ? said : "");
    stop();
    return wrong != NULL;
}

int main(int argc, char **argv) {
    int failed = 0, first = argc > 1 ? atoi(argv[1]) : 1,
        last = argc > 2 ? atoi(argv[2]) : 100;
    for (int m = 0; m < MISTAKES; m++)
        if (argc > 2 && strcmp(argv[2], mistakes[m]) == 0) {
            verbose = true;
            return try(first, (enum mistake)m);
        }
    for (int number = first; number <= last && failed < 10; number++)
        for (int m = 0; m < MISTAKES; m++)
            failed += try(number, (enum mistake)m);
    free(link);
    return failed > 0;
}
