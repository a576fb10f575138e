/*
 * calls.c: this process's communicators, and the calls that it makes on them: in words,
 * in bytes, counted, and passed on to whoever compares them with the other ranks'
 * (compare.c).
 *
 * NCCL User Guide, "Collective Operations", "Group Calls", "Point-to-point
 * communication".
 */
#include "ranks/calls.h"

#include "base/messages.h"
#include "ranks/round_trips.h"
#include "ranks/comms.h"
#include "say/report.h"
#include "say/words.h"

#include <stdio.h>

/* What does not fit is as much as fits: longer than any buffer. */
static size_t times(size_t a, size_t b) {
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t call_bytes(const struct judge_call *call) {
    return times(call->count, call->type_bytes);
}

static size_t bytes_of(struct judge *j, const struct judge_call *call,
                       enum blocks blocks) {
    const struct comm_facts *comm = calls_comm(j, call->comm);
    bool root = comm && comm->rank == call->root;
    if (blocks == NO_BLOCK || (blocks >= ROOTS_ONE && !root))
        return 0;
    bool all = blocks == ALL_BLOCKS || blocks == ROOTS_ALL;
    return times(call_bytes(call), all && comm ? (size_t)comm->nranks : 1);
}

size_t call_send_bytes(struct judge *j, const struct judge_call *call) {
    return bytes_of(j, call, kind_of(call->kind)->send);
}

size_t call_recv_bytes(struct judge *j, const struct judge_call *call) {
    return bytes_of(j, call, kind_of(call->kind)->recv);
}

struct comm *comm_of(struct judge *j, int comm) {
    return numbers_get(&j->calls->comms, comm);
}

const struct comm_facts *calls_comm(struct judge *j, int comm) {
    const struct comm *found = comm_of(j, comm);
    return found ? &found->facts : NULL;
}

/* Who compares; before MPI has started, this process. */
enum { HERE = -2, SENT = -1 };

void name_call(char out[CALL_NAME], const char *call) {
    snprintf(out, CALL_NAME, "%s", call ? call : "the program");
}

static void send_notice(struct judge *j, struct notice *notice,
                        const struct pair_count *left, size_t n) {
    notice->message = MESSAGE_JOIN;
    j->calls->activity++;
    memcpy(notice->host, j->host, sizeof notice->host);
    char *data = must_alloc(sizeof *notice + n * sizeof *left);
    memcpy(data, notice, sizeof *notice);
    if (n)
        memcpy(data + sizeof *notice, left, n * sizeof *left);
    message_send(j, 0, data, sizeof *notice + n * sizeof *left);
    free(data);
}

int judge_comm_made(struct judge *j, uint64_t id, int rank, int nranks, int device,
                    bool blocks, struct judge_at at) {
    struct calls *calls = j->calls;
    struct comm *comm = must_alloc(sizeof *comm);
    int number = numbers_add(&calls->comms, comm);
    comm->facts = (struct comm_facts){.id = id,
                                      .number = number + 1,
                                      .rank = rank,
                                      .nranks = nranks,
                                      .device = device,
                                      .blocks = blocks,
                                      .made = at};
    comm->keeper = j->nranks == 1 ? HERE : comm_keeper(j, id);
    comm->thread = -1;
    comm->same = map_get(&calls->by_id, id);
    map_put(&calls->by_id, id, comm);
    struct notice notice = {.what = NOTICE_MADE,
                            .id = id,
                            .rank = rank,
                            .nranks = nranks,
                            .device = device,
                            .number = number + 1,
                            .site = at.site};
    name_call(notice.call, at.call);
    send_notice(j, &notice, NULL, 0);
    return number;
}

uint64_t judge_split_id(struct judge *j, int comm, int color) {
    const struct comm *old = comm_of(j, comm);
    return old ? mixed(old->facts.id, mixed(old->split, (uint32_t)color)) | 1 : 0;
}

static uint64_t pair_key(int peer, enum pair_what what) {
    return 4 * (uint64_t)(uint32_t)peer + what;
}

struct pair_count *pair_count(struct comm *comm, int peer, enum pair_what what) {
    uint64_t key = pair_key(peer, what);
    struct pair_count *count = map_get(&comm->pairs, key);
    if (!count) {
        count = must_alloc(sizeof *count);
        *count = (struct pair_count){
            .comm = comm->facts.id, .rank = comm->facts.rank, .peer = peer, .what = what};
        map_put(&comm->pairs, key, count);
    }
    return count;
}

/* How many calls of the kind there were; of a send (receive) to (from) that peer. */
static uint64_t *counter(struct comm *comm, int kind, int peer) {
    return pairs(kind) ? &pair_count(comm, peer, kind == JUDGE_SEND)->n
                       : &comm->collectives;
}

/* A call that fails is taken back at once: who hears of it a little later never hears of
 * it. */
static const double SETTLED = 0.02; // seconds

void calls_flush(struct judge *j, bool all) {
    const double until = now(j) - (all ? 0 : SETTLED);
    struct calls *calls = j->calls;
    struct fact *log = calls->log;
    size_t n = 0;
    while (n < calls->nlog && calls->log_to[n].since <= until)
        n++;
    for (size_t i = 0; i < n; i++) {
        int to = calls->log_to[i].rank;
        if (to == SENT)
            continue; // with an earlier one
        struct batch head = {.message = MESSAGE_CALLS};
        memcpy(head.host, j->host, sizeof head.host);
        size_t bytes = sizeof head;
        char *data = must_alloc(sizeof head + (n - i) * sizeof *log);
        memcpy(data, &head, sizeof head);
        for (size_t k = i; k < n; k++)
            if (calls->log_to[k].rank == to) {
                memcpy(data + bytes, &log[k], sizeof *log);
                bytes += sizeof *log;
                calls->log_to[k].rank = SENT;
            }
        message_send(j, to == HERE ? j->rank : to, data, bytes);
        free(data);
    }
    calls->nlog -= n;
    if (n && calls->nlog) {
        memmove(log, log + n, calls->nlog * sizeof *log);
        memmove(calls->log_to, calls->log_to + n, calls->nlog * sizeof *calls->log_to);
    }
}

static void pass_on(struct judge *j, int to, const struct fact *fact) {
    enum { AT_ONCE = 64 };
    struct calls *calls = j->calls;
    if (calls->nlog >= AT_ONCE)
        calls_flush(j, true);
    ROOM(calls->log, calls->nlog, &calls->log_size);
    ROOM(calls->log_to, calls->nlog, &calls->log_to_size);
    calls->log[calls->nlog] = *fact;
    calls->log_to[calls->nlog++] = (struct log_to){to, now(j)};
}

/* A group's joins come while it is open, its calls when it ends. */
static struct recent_call *recently(struct judge *j, uint64_t group, bool join) {
    struct recent *recent = j->thread->recent;
    bool open = join && j->thread->group;
    bool goes_on =
        (open && recent->open) || (group && (recent->open || recent->group == group));
    if (!goes_on)
        recent->n = 0;
    recent->open = open;
    recent->group = group;
    ROOM(recent->at, recent->n, &recent->size);
    struct recent_call *call = &recent->at[recent->n++];
    call->join = join;
    call->number = 0;
    return call;
}

/* "When a single thread is managing multiple devices, group semantics must be used." NCCL
 * User Guide, "Management Of Multiple GPUs From One Thread". */
static void check_group_needed(struct judge *j, const struct comm *comm,
                               const struct fact *fact, struct position at) {
    const struct comm *other = map_get(&j->calls->by_id, comm->facts.id);
    for (; other; other = other->same)
        if (other != comm && !at.captured && other->thread == j->thread->number &&
            other->newest_seq == fact->seq &&
            (!at.group || other->newest_group != at.group))
            break;
    if (!other)
        return;
    struct finding f = finding(FINDING_deadlock_no_group, fact->site, other->newest_site);
    set_words_at(j, &f, "here", fact_words(fact), fact->site);
    set(&f, "comm_rank", "%d", comm->facts.rank);
    set(&f, "device", "%d", comm->facts.device);
    set(&f, "comm", "%s", comm_words(j, comm->facts.id, comm->facts.number));
    set(&f, "other_rank", "%d", other->facts.rank);
    set(&f, "other_device", "%d", other->facts.device);
    set_place(j, &f, "before", other->newest_site);
    say(j, &f);
}

static void follow(struct comm *comm, struct pending_op *op, uint64_t group) {
    if (!group || group != comm->group) {
        uint64_t *list = comm->earlier;
        size_t size = comm->earlier_size;
        comm->earlier = comm->newest;
        comm->earlier_size = comm->newest_size;
        comm->nearlier = comm->nnewest;
        comm->newest = list;
        comm->newest_size = size;
        comm->nnewest = 0;
        comm->group = group;
    }
    for (size_t i = 0; i < comm->nearlier && !op->like; i++)
        pending_comes_after(op, comm->earlier[i]);
    ROOM(comm->newest, comm->nnewest, &comm->newest_size);
    comm->newest[comm->nnewest++] = op->number;
}

/* NCCL connects two ranks as the first group (or call) on each side says. */
static int first_of_both(struct comm *comm, const struct judge_call *call,
                         uint64_t group) {
    const struct pair_count *other =
        map_get(&comm->pairs, pair_key(call->root, call->kind != JUDGE_SEND));
    pair_count(comm, call->root, call->kind == JUDGE_SEND)->group = group;
    return !other || other->n == 0          ? NOT_BOTH
           : group && group == other->group ? TOGETHER
                                            : APART;
}

/* The next one on its communicator; but for its seq. */
static struct fact fact_of(const struct judge *j, const struct comm *comm,
                           const struct judge_call *call, bool captured, bool grouped) {
    return (struct fact){.what = FACT_CALL,
                         .comm = comm->facts.id,
                         .index = comm->called.ops + 1,
                         .count = call->count,
                         .site = call->at.site,
                         .rank = comm->facts.rank,
                         .nranks = comm->facts.nranks,
                         .world = j->rank,
                         .device = comm->facts.device,
                         .number = comm->facts.number,
                         .kind = call->kind,
                         .type = call->type,
                         .redop = call->redop,
                         .root = call->root,
                         .captured = captured,
                         .grouped = grouped,
                         .send_offset = call->send_offset,
                         .recv_offset = call->recv_offset,
                         .config = call->config};
}

uint64_t calls_issued(struct judge *j, const struct judge_call *call,
                      struct position at) {
    struct comm *comm = comm_of(j, call->comm);
    if (!comm)
        return 0;
    j->calls->activity++;
    bool pair = pairs(call->kind);
    struct fact fact = fact_of(j, comm, call, at.captured, at.group != 0);
    comm->called.ops = fact.index;
    fact.seq = ++*counter(comm, call->kind, call->root);
    if (pair && fact.seq == 1)
        fact.both = first_of_both(comm, call, at.group);
    if (call->kind == JUDGE_SPLIT)
        comm->split = fact.seq;
    if (call->kind == JUDGE_SUSPEND)
        comm->suspended = call->at;
    else if (call->kind == JUDGE_RESUME)
        comm->suspended.call = NULL;
    if (j->options.mode == JUDGE_OFF)
        return fact.index;
    if (comm->facts.nranks > 1 || pair)
        pass_on(j, comm->keeper, &fact);
    struct recent_call *recent = recently(j, at.group, false);
    recent->fact = fact;
    recent->comm = call->comm;
    if (at.slot < 0)
        return fact.index;
    struct pending_op *op = pending_add(&j->calls->pending, at, call->comm);
    op->call = *call;
    op->fact = fact;
    op->at = call->at;
    round_trip_call(j, &fact, at);
    recent->number = op->number;
    follow(comm, op, at.group);
    if (pair || comm->facts.nranks == 1)
        return fact.index;
    check_group_needed(j, comm, &fact, at);
    comm->thread = j->thread->number;
    comm->newest_site = fact.site;
    comm->newest_seq = fact.seq;
    comm->newest_group = at.group;
    return fact.index;
}

/* What nobody has heard of yet is as if it had never been. */
static void unsay(struct judge *j, int keeper, const struct fact *fact) {
    struct calls *calls = j->calls;
    bool found = false;
    size_t n = 0;
    for (size_t i = 0; i < calls->nlog; i++) {
        const struct fact *logged = &calls->log[i];
        if (logged->comm == fact->comm && logged->rank == fact->rank &&
            logged->index == fact->index) {
            found |= logged->what == FACT_CALL;
            continue;
        }
        calls->log[n] = *logged;
        calls->log_to[n++] = calls->log_to[i];
    }
    calls->nlog = n;
    if (found || (fact->nranks == 1 && !pairs(fact->kind)))
        return;
    struct fact back = *fact;
    back.what = FACT_BACK;
    pass_on(j, keeper, &back);
}

void calls_taken_back(struct judge *j) {
    struct recent *recent = j->thread->recent;
    if (recent->n == 0 || recent->at[recent->n - 1].join)
        return;
    struct recent_call call = recent->at[--recent->n];
    struct comm *comm = comm_of(j, call.comm);
    j->calls->activity++;
    round_trip_taken_back(j, &call.fact);
    comm->called.ops--;
    if (call.fact.kind == JUDGE_SUSPEND)
        comm->suspended.call = NULL;
    --*counter(comm, call.fact.kind, call.fact.root);
    if (comm->newest_seq > comm->collectives)
        comm->newest_seq = comm->collectives;
    struct pending_op *op =
        call.number ? pending_find(&j->calls->pending, call.number) : NULL;
    if (op)
        pending_forget(&j->calls->pending, -1, op);
    unsay(j, comm->keeper, &call.fact);
}

bool calls_seen(struct judge *j) {
    const struct pending *u = &j->calls->pending;
    size_t before = u->n - u->nseen;
    pending_cover(&j->calls->pending, &j->known);
    return u->n - u->nseen < before;
}

void calls_complete(struct judge *j, int comm, struct clock *done) {
    const struct pending *u = &j->calls->pending;
    for (size_t i = 0; i < u->n; i++)
        if (!u->at[i]->seen && u->at[i]->comm == comm)
            clock_reach(done, u->at[i]->slot, u->at[i]->seq);
}

/* A call that the host does not know to be done, nor ncclCommFinalize has completed. */
static bool is_unfinished(struct judge *j, const struct pending_op *op) {
    const struct comm *of = comm_of(j, op->comm);
    return !op->seen && of && !of->facts.finalized &&
           !(of->left && of->how == JUDGE_FINALIZED);
}

bool judge_comm_unfinished(struct judge *j, int comm) {
    const struct pending *u = &j->calls->pending;
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i]->comm == comm && is_unfinished(j, u->at[i]))
            return true;
    return false;
}

void calls_failure(struct judge *j, const char *text, struct judge_at at) {
    struct calls *calls = j->calls;
    size_t bytes = strlen(text) + 1;
    // The end of a group returns once more what a call in it has returned.
    if (calls->failure && strcmp(calls->failure, text) == 0)
        return;
    calls->failure = must_grow(calls->failure, bytes);
    memcpy(calls->failure, text, bytes);
    calls->failed_site = at.site;
}

void calls_captured(struct judge *j, const struct judge_call *call, uint64_t group) {
    struct comm *comm = comm_of(j, call->comm);
    if (!comm)
        return;
    comm->called.captured++;
    comm->called.captured_site = call->at.site;
    j->calls->activity++;
    struct fact fact = fact_of(j, comm, call, true, group != 0);
    fact.seq = 1 + *counter(comm, call->kind, call->root);
    recently(j, group, false)->fact = fact;
}

void calls_not_captured(struct judge *j, int number) {
    struct comm *comm = comm_of(j, number);
    if (comm && comm->called.captured > 0 && --comm->called.captured == 0)
        comm->called.captured_site = 0;
}

void calls_launched(struct judge *j, int number) {
    struct comm *comm = comm_of(j, number);
    if (comm)
        comm->called.captured = 0;
}

struct notice calls_notice(const struct judge_join *join) {
    struct notice notice = {.what = NOTICE_JOINS,
                            .id = join->id,
                            .rank = join->rank,
                            .nranks = join->nranks,
                            .device = join->device,
                            .how = join->how,
                            .site = join->at.site};
    name_call(notice.call, join->at.call);
    memcpy(notice.bus_id, join->bus_id, sizeof notice.bus_id);
    notice.bus_id[sizeof notice.bus_id - 1] = '\0';
    return notice;
}

void calls_joins(struct judge *j, const struct judge_join *join) {
    struct notice notice = calls_notice(join);
    notice.thread = j->thread->number;
    j->epoch = 0;
    recently(j, 0, true)->notice = notice;
    send_notice(j, &notice, NULL, 0);
}

void calls_join_failed(struct judge *j) {
    struct recent *recent = j->thread->recent;
    if (recent->n == 0 || !recent->at[recent->n - 1].join)
        return;
    struct notice notice = recent->at[--recent->n].notice;
    notice.what = NOTICE_FAILED;
    send_notice(j, &notice, NULL, 0);
}

void judge_id_made(struct judge *j, uint64_t id, uint64_t same, struct judge_at at) {
    struct notice notice = {.what = NOTICE_ID, .id = id, .same = same, .site = at.site};
    name_call(notice.call, at.call);
    send_notice(j, &notice, NULL, 0);
}

static void release(struct comm *comm) {
    map_clear(&comm->pairs, free);
    free(comm->newest);
    free(comm->earlier);
    comm->newest = comm->earlier = NULL;
    comm->nnewest = comm->newest_size = comm->nearlier = comm->earlier_size = 0;
}

/* Of so many collectives, or sends (receives) of one peer: how many have ended for all
 * that the host knows. */
static uint64_t known(struct judge *j, int comm, uint64_t n, int peer, bool send) {
    const struct pending *pending = &j->calls->pending;
    for (size_t i = 0; i < pending->n; i++) {
        const struct pending_op *op = pending->at[i];
        const struct fact *fact = &op->fact;
        if (op->seen || op->comm != comm || pairs(fact->kind) != (peer >= 0) ||
            (peer >= 0 && (fact->root != peer || (fact->kind == JUDGE_SEND) != send)))
            continue;
        n = fact->seq - 1 < n ? fact->seq - 1 : n;
    }
    return n;
}

void calls_comm_ends(struct judge *j, int number, enum judge_end how,
                     struct judge_at at) {
    struct comm *comm = comm_of(j, number);
    if (!comm || comm->facts.gone)
        return;
    struct notice notice = {.what = NOTICE_ENDED,
                            .id = comm->facts.id,
                            .rank = comm->facts.rank,
                            .nranks = comm->facts.nranks,
                            .device = comm->facts.device,
                            .how = how,
                            .number = comm->facts.number,
                            .called = comm->called,
                            .collectives = comm->collectives,
                            .known = known(j, number, comm->collectives, -1, false),
                            .site = at.site};
    name_call(notice.call, at.call);
    struct pair_count *left = NULL;
    size_t n = 0, size = 0;
    for (size_t i = 0; i < comm->pairs.size; i++) {
        const struct pair_count *count = comm->pairs.at[i].value;
        if (!count)
            continue;
        ROOM(left, n, &size);
        left[n] = *count;
        left[n++].known = known(j, number, count->n, count->peer, count->what);
    }
    send_notice(j, &notice, left, n);
    free(left);
    if (how == JUDGE_ABORTED || how == JUDGE_REVOKED)
        pending_forget(&j->calls->pending, number, NULL);
    if (how == JUDGE_ABORTED && j->outside.aborted)
        j->outside.aborted(j->outside.self, comm->facts.id, at.site);
    comm->how = how;
    comm->left = true;
    comm->facts.finalized |= how == JUDGE_FINALIZED;
    comm->facts.ended = at;
    if (how != JUDGE_DESTROYED && how != JUDGE_RESET && how != JUDGE_ABORTED)
        return;
    comm->facts.gone = true;
    struct fact fact = {.what = FACT_ENDED,
                        .comm = comm->facts.id,
                        .rank = comm->facts.rank,
                        .nranks = comm->facts.nranks,
                        .world = j->rank};
    pass_on(j, comm->keeper, &fact);
    // What is left of it is what people and later calls ask for.
    struct comm *newest = map_get(&j->calls->by_id, comm->facts.id);
    if (newest == comm)
        map_put(&j->calls->by_id, comm->facts.id, comm->same);
    for (; newest; newest = newest->same)
        if (newest->same == comm)
            newest->same = comm->same;
    release(comm);
}

bool judge_usable(struct judge *j, const struct judge_call *call) {
    const struct comm *comm = comm_of(j, call->comm);
    bool revoked =
        comm && comm->left && comm->how == JUDGE_REVOKED && call->kind != JUDGE_SPLIT;
    if (revoked)
        judge_comm_used_after(j, call->comm, call->at);
    if (!comm || !comm->suspended.call || call->kind == JUDGE_SUSPEND ||
        call->kind == JUDGE_RESUME)
        return !revoked;
    struct finding f =
        finding(FINDING_setup_suspended, call->at.site, comm->suspended.site);
    set_here(j, &f, call->at);
    set(&f, "comm", "%s", comm_words(j, comm->facts.id, comm->facts.number));
    set_at(j, &f, "suspended", comm->suspended);
    say(j, &f);
    return false;
}

void judge_comm_used_after(struct judge *j, int number, struct judge_at at) {
    const struct comm *comm = comm_of(j, number);
    if (!comm)
        return;
    bool revoked = comm->how == JUDGE_REVOKED;
    const char *how = comm->how == JUDGE_ABORTED ? "aborted"
                      : revoked                  ? "revoked"
                                                 : "destroyed";
    struct finding f = finding(FINDING_setup_used_after, at.site, comm->facts.ended.site);
    f.hint = revoked ? HINT_used_after_revoke : HINT_OF_FINDING;
    set_here(j, &f, at);
    set(&f, "comm", "%s", comm_words(j, comm->facts.id, comm->facts.number));
    set_at(j, &f, "made", comm->facts.made);
    set(&f, "how", "%s", how);
    set(&f, "by", "%s", comm->how == JUDGE_RESET ? " by cudaDeviceReset" : "");
    set_place(j, &f, "ended", comm->facts.ended.site);
    say(j, &f);
}

void set_comm(struct judge *j, struct finding *f, int number) {
    const struct comm_facts *comm = calls_comm(j, number);
    if (!comm)
        return;
    set(f, "comm", "%s", comm_words(j, comm->id, comm->number));
    set(f, "comm_rank", "%d", comm->rank);
    set(f, "nranks", "%d", comm->nranks);
    set(f, "device", "%d", comm->device);
}

static void comm_free(void *comm) {
    release(comm);
    free(comm);
}

void calls_free(struct calls *calls) {
    numbers_clear(&calls->comms, comm_free);
    map_free(&calls->by_id);
    pending_free(&calls->pending);
    free(calls->log);
    free(calls->log_to);
    free(calls->failure);
    free(calls);
}

bool calls_before(struct judge *j, int slot, uint64_t seq, const struct clock *clock) {
    const struct pending_op **list = NULL;
    size_t size = 0, n = pending_covered(&j->calls->pending, clock, &list, &size);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= list[i]->slot != slot || list[i]->seq != seq;
    free(list);
    return any;
}

/* What is queued and not known to be done. */
void calls_check_unfinished(struct judge *j) {
    enum { MANY = 4 };
    const struct pending *u = &j->calls->pending;
    struct text queued = {0};
    struct finding f = finding(FINDING_missing_end, 0, 0);
    int n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const struct pending_op *op = u->at[i];
        if (is_unfinished(j, op) && n++ < MANY)
            text_add(&queued, "  queued: %s at %s, operation %llu on communicator %s\n",
                     call_words(&op->call), place(j, op->call.at.site),
                     (unsigned long long)op->fact.index,
                     comm_words(j, op->fact.comm, op->fact.number));
    }
    if (n > MANY)
        text_add(&queued, "  and %d more\n", n - MANY);
    if (n == 0)
        return;
    set_lines(&f, "queued", &queued);
    say(j, &f);
}
