/*
 * judge.c: when ranks wait, can what they wait for still come?
 *
 * A rank that waits describes itself to rank 0 of the world: what it waits for, what is
 * queued on its streams, who has not announced himself. Rank 0 marks all who can go on: a
 * rank that computes can; one that waits can if those it waits for can. Who is never
 * marked is stuck for good, whatever the others still do. Before it says so it hears from
 * each of them twice more, unchanged.
 *
 * Model: the wait-for graphs of MUST. No data is touched here.
 */
#include "internal.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

enum { ASKS_MPI = -2 };
enum { MAX_OPS = 256, MAX_CALLS = 256, MAX_WAITS = 8, MAX_PEERS = 64, MAX_COMMS = 64 };

struct wait_record {
    int32_t kind, op; // the operation waited for, as an index; -1: none, or it is done
    char name[32];
    int64_t site;
    uint64_t join;
    int32_t join_rank, join_nranks;
    int32_t comm_number; // of ncclCommDestroy
    // In the world: of an MPI call, negative if not known; of ncclCommDestroy.
    int32_t peers[MAX_PEERS], npeers;
};

struct op_record {
    int32_t before[MAX_WAITS], nbefore; // operations that must be done first
    int32_t first_call, ncalls;
    char name[32];
    int64_t site;
};

struct call_record {
    struct facts facts;
    int32_t op, state, comm_number;
    int32_t missing[MAX_PEERS], missing_world[MAX_PEERS], nmissing;
};

struct comm_record {
    uint64_t id, calls;
    int32_t rank;
};

struct state {
    uint64_t activity;
    char host[32];
    char failure[96]; // of its last call of NCCL that failed
    int64_t failed_at;
    int32_t nwaits, nops, ncalls, ncomms;
    int32_t threads; // of the program that do not wait
    struct wait_record waits[MAX_WAITS];
    struct comm_record comms[MAX_COMMS];
    // as they are sent, only as many as there are
    struct op_record ops[MAX_OPS];
    struct call_record calls[MAX_CALLS];
};

/* --- A rank describes itself ------------------------------------------------------ */

static struct wait *waits;

static void add_wait_peers(struct wait_record *record, const struct wait *wait) {
    MPI_Group group, world;
    int n, ranks[MAX_PEERS], peers[MAX_PEERS];
    record->npeers = wait->kind == WAIT_POLL && !wait->stream ? ASKS_MPI : -1;
    if (wait->kind == WAIT_LEAVE) {
        record->comm_number = wait->comm->number;
        record->npeers = 0;
        for (int r = 0; (r = comm_remains(wait->comm, r)) >= 0; r++)
            if (record->npeers < MAX_PEERS)
                record->peers[record->npeers++] = wait->comm->world[r];
    }
    if (wait->kind != WAIT_HOST_MPI || wait->peer == PEER_UNKNOWN)
        return;
    PMPI_Comm_group(wait->mpi, &group);
    PMPI_Comm_group(library.control, &world);
    PMPI_Group_size(group, &n);
    n = wait->peer >= 0 ? 1 : n > MAX_PEERS ? MAX_PEERS : n;
    for (int i = 0; i < n; i++)
        ranks[i] = wait->peer >= 0 ? wait->peer : i;
    PMPI_Group_translate_ranks(group, n, ranks, world, peers);
    for (int i = 0; i < n; i++)
        record->peers[i] = peers[i];
    record->npeers = n;
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

/* The operations that are not done, numbered as they will be in the description. */
struct listed {
    const struct op *ops[MAX_OPS];
    int n;
};

static int index_of(const struct listed *list, int slot, uint64_t seq) {
    for (int i = 0; i < list->n; i++)
        if (list->ops[i]->stream->slot == slot && list->ops[i]->seq == seq)
            return i;
    return -1;
}

static void describe_call(struct call_record *record, const struct call *call, int op) {
    const struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    record->facts = *f;
    record->op = op;
    record->state = call->state;
    record->comm_number = comm->number;
    for (int r = 0; r < comm->nranks && record->nmissing < MAX_PEERS; r++) {
        bool heard = call->heard &&
                     (point_to_point(f->kind) ? call->missing == 0 : call->heard[r]);
        if (comm->clique) // announced means waiting in the clique
            for (struct call *o = comm->clique->waiting; o; o = o->next_waiting)
                heard |= o->state == CALL_ANNOUNCED && o->facts.rank == r &&
                         !point_to_point(f->kind) && !point_to_point(o->facts.kind) &&
                         o->facts.seq == f->seq;
        if (!call_talks(call, r) || heard)
            continue;
        record->missing[record->nmissing] = r;
        record->missing_world[record->nmissing++] = comm->world[r];
    }
}

static void describe_self(struct state *state) {
    static struct listed list;
    memset(state, 0, sizeof *state);
    state->activity = library.activity;
    memcpy(state->host, library.host, sizeof state->host - 1);
    memcpy(state->failure, library.failure, sizeof state->failure);
    state->failed_at = site_offset(library.failed_at);
    list.n = 0;
    for (int s = 0; s < nstreams; s++)
        for (const struct op *op = streams[s] ? streams[s]->head : NULL;
             op && list.n < MAX_OPS; op = op->next)
            list.ops[list.n++] = op;
    for (int i = 0; i < list.n; i++) {
        const struct op *op = list.ops[i];
        struct op_record *record = &state->ops[state->nops++];
        if (i > 0 && list.ops[i - 1]->stream == op->stream)
            record->before[record->nbefore++] = i - 1;
        for (int d = 0; d < op->ndependencies && record->nbefore < MAX_WAITS; d++) {
            int before =
                index_of(&list, op->dependencies[d].slot, op->dependencies[d].seq);
            if (before >= 0 && before != i)
                record->before[record->nbefore++] = before;
        }
        snprintf(record->name, sizeof record->name, "%s", op->name);
        record->site = site_offset(op->site);
        record->first_call = state->ncalls;
        for (const struct call *call = op->calls; call && state->ncalls < MAX_CALLS;
             call = call->next)
            if (call->state != CALL_DONE) {
                describe_call(&state->calls[state->ncalls++], call, i);
                record->ncalls++;
            }
    }
    for (struct wait *wait = waits; wait && state->nwaits < MAX_WAITS;
         wait = wait->outer) {
        struct wait_record *record = &state->waits[state->nwaits++];
        record->kind = wait->kind;
        record->op = wait->stream ? index_of(&list, wait->stream->slot, wait->seq) : -1;
        snprintf(record->name, sizeof record->name, "%s", wait->name);
        record->site = site_offset(wait->site);
        if (wait->init) {
            record->join = wait->init->id;
            record->join_rank = wait->init->rank;
            record->join_nranks = wait->init->nranks;
        }
        add_wait_peers(record, wait);
    }
    for (struct ncclComm *comm = communicators; comm && state->ncomms < MAX_COMMS;
         comm = comm->next)
        state->comms[state->ncomms++] =
            (struct comm_record){comm->id, comm->calls, comm->rank};
    state->threads = (int)(threads_here() - threads_at_start) + 1 - state->nwaits;
}

/* --- Rank 0 keeps what it hears --------------------------------------------------- */

static struct known {
    struct state *state; // NULL: never waited
    unsigned heard;      // how often
} * known;
static double last_change;

void judge_receive(int from, const char *data, size_t bytes) {
    if (!known)
        known = must_alloc((size_t)library.nworld * sizeof *known);
    struct known *k = &known[from];
    if (!k->state)
        k->state = must_alloc(sizeof *k->state);
    else if (k->state->activity == ((const struct state *)data)->activity &&
             k->state->nwaits == ((const struct state *)data)->nwaits)
        goto unchanged;
    last_change = now();
unchanged:;
    // The operations and calls follow the fixed part, as many as it says.
    struct state *s = k->state;
    size_t fixed = offsetof(struct state, ops);
    memcpy(s, data, fixed);
    memcpy(s->ops, data + fixed, (size_t)s->nops * sizeof *s->ops);
    memcpy(s->calls, data + fixed + (size_t)s->nops * sizeof *s->ops,
           (size_t)s->ncalls * sizeof *s->calls);
    (void)bytes;
    k->heard++;
}

static void tell(void) {
    static struct state state;
    static char *packed;
    describe_self(&state);
    size_t fixed = offsetof(struct state, ops);
    size_t ops = (size_t)state.nops * sizeof *state.ops;
    size_t calls = (size_t)state.ncalls * sizeof *state.calls;
    if (!packed)
        packed = must_alloc(sizeof state);
    memcpy(packed, &state, fixed);
    memcpy(packed + fixed, state.ops, ops);
    memcpy(packed + fixed + ops, state.calls, calls);
    wire_send_state(packed, fixed + ops + calls);
}

/* --- Who can go on ---------------------------------------------------------------- */

/* Marks, one per process: its host thread, its operations (begin, end), its calls. */
static struct marks { bool host, begin[MAX_OPS], end[MAX_OPS], call[MAX_CALLS]; } * marks;
static double quiet; // seconds since anything changed anywhere

static bool finished(const struct state *state) {
    for (int w = 0; state && w < state->nwaits; w++)
        if (state->waits[w].kind == WAIT_FINALIZE || state->waits[w].kind == WAIT_EXIT)
            return true;
    return false;
}

/* Whether process p may yet make calls that it has not made. */
static bool can_call(int p) {
    return !finished(known[p].state) && marks[p].host;
}

static bool waits_in(const struct state *state, int kind) {
    for (int w = 0; state && w < state->nwaits; w++)
        if ((int)state->waits[w].kind == kind)
            return true;
    return false;
}

/* The call of rank `r` (in process p) that `call` waits for; -1: p has not made it. */
static int counterpart(const struct call_record *call, int r, int p) {
    const struct state *state = known[p].state;
    const struct facts *f = &call->facts;
    for (int c = 0; state && c < state->ncalls; c++) {
        const struct facts *g = &state->calls[c].facts;
        if (g->comm != f->comm || g->rank != r)
            continue;
        if (!point_to_point(f->kind) && !point_to_point(g->kind) && g->seq == f->seq)
            return c;
        if (point_to_point(f->kind) && point_to_point(g->kind) && g->kind != f->kind &&
            g->root == f->rank && f->root == r && g->seq == f->seq)
            return c;
    }
    return -1;
}

static bool comes(const struct call_record *call, int i) {
    int p = call->missing_world[i], c = counterpart(call, call->missing[i], p);
    if (!known[p].state)
        return true;
    if (c < 0)
        return can_call(p);
    const struct call_record *other = &known[p].state->calls[c];
    if (other->state != CALL_QUEUED || point_to_point(other->facts.kind))
        return marks[p].begin[other->op];
    // Collectives of a communicator begin one after the other.
    for (int d = 0; d < known[p].state->ncalls; d++) {
        const struct call_record *earlier = &known[p].state->calls[d];
        if (earlier->facts.comm == other->facts.comm && earlier->state == CALL_QUEUED &&
            earlier->facts.rank == other->facts.rank &&
            !point_to_point(earlier->facts.kind) &&
            earlier->facts.seq < other->facts.seq && !marks[p].begin[earlier->op])
            return false;
    }
    return marks[p].begin[other->op];
}

static bool call_can(int p, int c) {
    const struct call_record *call = &known[p].state->calls[c];
    for (int i = 0; i < call->nmissing; i++)
        if (!comes(call, i))
            return false;
    return true;
}

static bool join_can(const struct wait_record *wait) {
    int here = 0, may = 0;
    for (int p = 0; p < library.nworld; p++) {
        bool joins = false;
        for (int w = 0; known[p].state && w < known[p].state->nwaits; w++)
            if (known[p].state->waits[w].kind == WAIT_JOIN &&
                known[p].state->waits[w].join == wait->join) {
                here++;
                joins = true;
            }
        may += !joins && (!known[p].state || can_call(p));
    }
    return here == wait->join_nranks || (may > 0 && here + may >= wait->join_nranks);
}

/* Nobody knows whom p waits for: anybody who can go on may be it. */
static bool another_can(int p) {
    for (int q = 0; q < library.nworld; q++)
        if (q != p && (!known[q].state || can_call(q)))
            return true;
    return false;
}

/* Whether process q may yet do what a wait of process p, for q among others, needs. */
static bool peer_can(int p, const struct wait_record *wait, int q) {
    const struct state *state = known[q].state;
    return q == p || !state || can_call(q) ||
           (wait->kind == WAIT_HOST_MPI && waits_in(state, WAIT_HOST_MPI));
}

static bool wait_can(int p, const struct wait_record *wait) {
    switch (wait->kind) {
    case WAIT_OP: return wait->op < 0 || marks[p].end[wait->op];
    case WAIT_POLL:
        // It is free to do something else between two looks; but not for ever.
        if (quiet < library.timeout)
            return true;
        return wait->npeers == ASKS_MPI ? another_can(p)
                                        : wait->op < 0 || marks[p].end[wait->op];
    case WAIT_JOIN: return join_can(wait);
    case WAIT_HOST_MPI:
        if (wait->npeers < 0)
            return quiet < library.timeout || another_can(p);
        // fall through
    case WAIT_LEAVE:
        for (int i = 0; i < wait->npeers; i++)
            if (!peer_can(p, wait, wait->peers[i]))
                return false;
        return true;
    default: return true;
    }
}

static bool host_can(int p) {
    const struct state *state = known[p].state;
    if (!state || (state->threads > 0 && quiet < 6 * library.timeout))
        return true;
    for (int w = 0; w < state->nwaits; w++)
        if (wait_can(p, &state->waits[w]))
            return true;
    return state->nwaits == 0;
}

static bool mark(bool *what, bool can) {
    bool fresh = can && !*what;
    *what |= can;
    return fresh;
}

static void mark_all(void) {
    if (!marks)
        marks = must_alloc((size_t)library.nworld * sizeof *marks);
    memset(marks, 0, (size_t)library.nworld * sizeof *marks);
    for (bool again = true; again;) {
        again = false;
        for (int p = 0; p < library.nworld; p++) {
            const struct state *state = known[p].state;
            for (int i = 0; state && i < state->nops; i++) {
                const struct op_record *op = &state->ops[i];
                bool can = true;
                for (int b = 0; b < op->nbefore; b++)
                    can &= marks[p].end[op->before[b]];
                again |= mark(&marks[p].begin[i], can);
                for (int c = op->first_call; c < op->first_call + op->ncalls; c++) {
                    again |= mark(&marks[p].call[c], marks[p].begin[i] && call_can(p, c));
                    can &= marks[p].call[c];
                }
                again |= mark(&marks[p].end[i], can);
            }
            again |= mark(&marks[p].host, host_can(p));
        }
    }
}

/* --- The report ------------------------------------------------------------------- */

/* The call that keeps operation i of process p from ending; -1: none of its own. */
static int culprit(int p, int i) {
    const struct state *state = known[p].state;
    const struct op_record *op = &state->ops[i];
    for (int b = 0; b < op->nbefore; b++)
        if (!marks[p].end[op->before[b]])
            return culprit(p, op->before[b]);
    for (int c = op->first_call; c < op->first_call + op->ncalls; c++)
        if (!marks[p].call[c])
            return c;
    return -1;
}

static int stuck_wait(int p) {
    const struct state *state = known[p].state;
    for (int w = 0; state && !marks[p].host && w < state->nwaits; w++)
        if (state->waits[w].kind != WAIT_FINALIZE && state->waits[w].kind != WAIT_EXIT)
            return w;
    return -1;
}

/* The call that process p, which is stuck, waits for; NULL: it waits for something else.
 */
static const struct call_record *stuck_call(int p) {
    const struct state *state = known[p].state;
    int w = stuck_wait(p);
    if (w < 0 || state->waits[w].op < 0)
        return NULL;
    int c = culprit(p, state->waits[w].op);
    return c < 0 ? NULL : &state->calls[c];
}

/* A process that keeps p from going on. */
static int blocker(int p) {
    const struct call_record *call = stuck_call(p);
    for (int i = 0; call && i < call->nmissing; i++)
        if (!comes(call, i))
            return call->missing_world[i];
    int w = stuck_wait(p);
    const struct wait_record *wait = w < 0 ? NULL : &known[p].state->waits[w];
    for (int i = 0; wait && i < wait->npeers; i++)
        if (!peer_can(p, wait, wait->peers[i]))
            return wait->peers[i];
    return -1;
}

static void add_absent(struct text *text, const int *ranks, int n) {
    text_add(text, "; ");
    add_ranks(text, ranks, n);
    text_add(text, " %s not there", n == 1 ? "is" : "are");
}

static void add_line(struct text *text, int p, const struct call_record *about) {
    const struct state *state = known[p].state;
    char words[256], here[256], there[256];
    text_add(text, "  rank %d on %s: ", p, state ? state->host : "?");
    if (!state) {
        text_add(text, "computes\n");
        return;
    }
    uint64_t calls = 0;
    for (int c = 0; about && c < state->ncomms; c++)
        if (state->comms[c].id == about->facts.comm)
            calls = state->comms[c].calls;
    const struct wait_record *wait = &state->waits[0];
    int w = stuck_wait(p);
    if (w >= 0)
        wait = &state->waits[w];
    if (finished(state)) {
        if (wait->kind == WAIT_EXIT)
            text_add(text, "has ended without MPI_Finalize");
        else
            text_add(text, "is in MPI_Finalize at %s", offset_text(here, wait->site));
    } else if (wait->kind == WAIT_JOIN) {
        text_add(text, "waits in %s(rank %d of %d ranks) at %s", wait->name,
                 wait->join_rank, wait->join_nranks, offset_text(here, wait->site));
    } else {
        text_add(text, "waits in %s at %s", wait->name, offset_text(here, wait->site));
    }
    const struct call_record *call = stuck_call(p);
    if (call) {
        if (call->facts.kind != CALL_SPLIT) // which is what it waits in
            text_add(text, " for %s at %s", facts_text(words, &call->facts),
                     offset_text(there, call->facts.site));
        text_add(text, ", operation %llu on communicator %d",
                 (unsigned long long)call->facts.index, call->comm_number);
        int absent[MAX_PEERS], n = 0;
        for (int i = 0; i < call->nmissing; i++)
            if (!comes(call, i))
                absent[n++] =
                    call->facts.together ? call->missing[i] : call->missing_world[i];
        add_absent(text, absent, n);
    } else if (!about && wait->kind == WAIT_LEAVE) {
        text_add(text, ", of communicator %d", wait->comm_number);
        add_absent(text, wait->peers, wait->npeers);
    } else if (about) {
        text_add(text, ", after %llu operation%s on the communicator",
                 (unsigned long long)calls, calls == 1 ? "" : "s");
    }
    if (state->failure[0])
        text_add(text, "; got an error at %s: %s", offset_text(here, state->failed_at),
                 state->failure);
    text_add(text, "\n");
}

static void report_join(void) {
    struct text text = {0};
    const struct wait_record *first = NULL;
    bool differ = false;
    for (int p = 0; p < library.nworld; p++)
        for (int w = 0; known[p].state && w < known[p].state->nwaits; w++) {
            const struct wait_record *wait = &known[p].state->waits[w];
            if (wait->kind != WAIT_JOIN)
                continue;
            differ |= first && wait->join != first->join;
            first = first ? first : wait;
        }
    text_add(&text, differ ? "setup: the ranks do not give the same unique id to"
                             " ncclCommInitRank\n"
                           : "setup: ncclCommInitRank waits for ranks that never come\n");
    for (int p = 0; p < library.nworld; p++)
        add_line(&text, p, NULL);
    text_add(&text,
             differ ? "  Hint: one rank calls ncclGetUniqueId, and MPI_Bcast brings all"
                      " of it, sizeof(ncclUniqueId)\n"
                      "        bytes, to the others. The real NCCL hangs here.\n"
                    : "  Hint: each of the nranks ranks calls ncclCommInitRank once."
                      " The real NCCL hangs here.\n");
    report(&text, false);
}

/* The program's own threads and MPI calls: rank 0 cannot prove anything, but nothing has
 * moved for long, and every rank waits. */
static void report_standstill(void) {
    struct text text = {0};
    text_add(&text, "missing: every rank waits, and nothing has moved for %g seconds\n",
             library.timeout);
    for (int p = 0; p < library.nworld; p++)
        add_line(&text, p, NULL);
    text_add(&text,
             "  Hint: look at the MPI calls: one of them waits for a message or a rank"
             " that never comes.\n");
    report(&text, false);
}

static bool leaving(int p) {
    int w = stuck_wait(p);
    return w >= 0 && known[p].state->waits[w].kind == WAIT_LEAVE;
}

static void report_stuck(int first) {
    struct text text = {0};
    // From one to who blocks it, until somebody comes twice: that is a cycle. It is none
    // if somebody has ended, or waits for he does not know whom, or for a call of his
    // own; nor if one has given its communicators up, and the other has a call left.
    const struct call_record *about = stuck_call(first);
    bool *seen_before = must_alloc((size_t)library.nworld), cycle = true, leave = false;
    int p = first;
    while (cycle && !seen_before[p]) {
        seen_before[p] = true;
        p = blocker(p);
        cycle = p >= 0 && !finished(known[p].state) && !(about && leaving(p));
    }
    cycle = cycle && blocker(p) != p;
    for (int q = 0; q < library.nworld; q++)
        leave |= !about && leaving(q);
    bool pair = about && point_to_point(about->facts.kind);
    char words[256];
    if (cycle)
        text_add(&text, "deadlock: ranks wait for one another\n");
    else if (pair)
        text_add(&text, "deadlock: a %s that no %s meets, on communicator %d\n",
                 about->facts.kind == CALL_SEND ? "send" : "receive",
                 about->facts.kind == CALL_SEND ? "receive" : "send", about->comm_number);
    else if (about)
        text_add(&text,
                 "missing: %s, operation %llu on communicator %d, waits for ranks that"
                 " never come\n",
                 facts_text(words, &about->facts), (unsigned long long)about->facts.index,
                 about->comm_number);
    else
        text_add(&text, "missing: %s waits for ranks that never come\n",
                 known[first].state->waits[stuck_wait(first)].name);
    int told = 0;
    for (int q = 0; q < library.nworld && told < 32; q++)
        if (stuck_wait(q) >= 0 || finished(known[q].state)) {
            add_line(&text, q, about);
            told++;
        }
    if (cycle) {
        text_add(&text, "  The cycle: rank %d", p);
        int q = p;
        do {
            q = blocker(q);
            text_add(&text, " waits for rank %d%s", q, q == p ? "" : ", which");
        } while (q != p);
        text_add(&text, ".\n");
    }
    text_add(
        &text, "  Hint: %s\n",
        pair ? "each ncclSend needs an ncclRecv on the other side; those that must"
               " happen together go\n"
               "        between ncclGroupStart and ncclGroupEnd.\n"
               "        The real NCCL hangs here."
        : about
            ? "all ranks of a communicator make the same calls, in the same order over"
              " all communicators.\n"
              "        The real NCCL hangs here."
        : leave
            ? "ncclCommDestroy waits for all ranks of the same node: all call it, and"
              " several\n"
              "        communicators are destroyed in the same order. The real NCCL hangs"
              " here."
            : "all ranks of an MPI communicator make the same collective calls, in the"
              " same order.");
    free(seen_before);
    report(&text, false);
}

/* --- Looking ---------------------------------------------------------------------- */

static void look(void) {
    static unsigned *heard;
    static uint64_t *activity;
    static bool suspicious;
    if (library.check == CHECK_OFF || !known)
        return;
    quiet = now() - last_change;
    mark_all();
    int first = -1, join = -1, waiting = 0;
    for (int p = 0; p < library.nworld; p++) {
        const struct state *state = known[p].state;
        waiting += state && state->nwaits > 0 && state->threads <= 0;
        int w = stuck_wait(p);
        if (w >= 0 && state->waits[w].kind == WAIT_JOIN)
            join = p;
        else if (w >= 0 && (first < 0 || (!stuck_call(first) && stuck_call(p))))
            first = p;
    }
    bool all_ended = true;
    for (int p = 0; p < library.nworld; p++)
        all_ended &= finished(known[p].state);
    bool still = waiting == library.nworld && !all_ended && quiet > library.timeout;
    if (first < 0 && join < 0 && !still) {
        suspicious = false;
        return;
    }
    if (!heard) {
        heard = must_alloc((size_t)library.nworld * sizeof *heard);
        activity = must_alloc((size_t)library.nworld * sizeof *activity);
    }
    // Is it still so? From everybody it rests on, two more descriptions, unchanged.
    bool confirmed = suspicious;
    for (int p = 0; p < library.nworld && suspicious; p++) {
        if (stuck_wait(p) < 0 && !finished(known[p].state) && !still)
            continue;
        if (!known[p].state || known[p].state->activity != activity[p])
            suspicious = false;
        else if (known[p].heard < heard[p] + 2)
            confirmed = false;
    }
    if (!suspicious) {
        for (int p = 0; p < library.nworld; p++) {
            heard[p] = known[p].heard;
            activity[p] = known[p].state ? known[p].state->activity : 0;
        }
        suspicious = true;
        return;
    }
    if (!confirmed)
        return;
    if (join >= 0)
        report_join();
    else if (first >= 0)
        report_stuck(first);
    else
        report_standstill();
}

/* --- Waiting ---------------------------------------------------------------------- */

enum { BEFORE_TELLING_MS = 100, BETWEEN_MS = 100 };

void wait_begin(struct wait *wait, enum wait_kind kind, const char *name, void *site) {
    if (kind != WAIT_POLL)
        poll_over();
    wait->kind = kind;
    wait->name = name;
    wait->site = site;
    wait->since = now();
    wait->told = 0;
    wait->activity = ++library.activity;
    wait->outer = waits;
    waits = wait;
}

void wait_end(struct wait *wait) {
    struct wait **at = &waits;
    while (*at && *at != wait)
        at = &(*at)->outer;
    if (*at)
        *at = wait->outer;
    wait->kind = WAIT_NOTHING;
    library.activity++;
}

/* Rank 0 hears of a wait that lasts, and looks at what it has heard. */
static void consult_judge(struct wait *wait) {
    double t = now();
    if (wait->since == 0)
        wait->since = t;
    if (t - wait->since < BEFORE_TELLING_MS * 1e-3 || t - wait->told < BETWEEN_MS * 1e-3)
        return;
    wait->told = t;
    tell();
    if (library.world == 0)
        look();
}

void wait_tick(struct wait *wait, bool progress) {
    enum { SHORT_WAIT = 2000 };
    if (progress || wait->activity != library.activity) {
        wait->since = 0;
        wait->idle = 0;
        wait->activity = library.activity;
    } else if (++wait->idle > 16 && library.check != CHECK_OFF) {
        consult_judge(wait);
    }
    unlock_library();
    if (wait->idle > SHORT_WAIT) {
        struct timespec pause = {0, 200000};
        nanosleep(&pause, NULL);
    } else if (wait->idle % 16 == 15) { // MPI yields in between, if it is told to
        sched_yield();
    }
    lock_library();
}
