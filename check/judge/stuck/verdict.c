/*
 * verdict.c: on rank 0: what stuck.c has found, in words.
 */
#include "say/failed.h"
#include "say/report.h"
#include "say/words.h"
#include "stuck/stuck.h"

enum { MANY = 32 }; // ranks in a report

/* What keeps an operation from ending: the first that has begun and does not end. */
static const struct op *culprit(const struct op *op) {
    for (;;) {
        const struct op *before = NULL;
        for (int b = 0; b < op->nbefore && !before; b++)
            if (!op->before[b]->ends)
                before = op->before[b];
        if (!before)
            return op;
        op = before;
    }
}

static struct cause cause_of(struct judge *j, const struct wait *wait) {
    struct stuck *s = j->stuck;
    for (int i = 0; wait->kind == WAIT_ORDER && i < wait->n; i++) {
        if (wait->ops[i]->ends)
            continue;
        const struct op *op = culprit(wait->ops[i]);
        if (op->told->signals)
            return (struct cause){.signals = op->told};
        return (struct cause){.call = &op->told->fact, .meeting = op->meeting};
    }
    const struct recent_call *item =
        wait->kind == WAIT_LAUNCH ? stuck_missing(j, wait) : NULL;
    if (item && item->join)
        return (struct cause){.join = &item->notice};
    if (item)
        return (struct cause){.call = &item->fact,
                              .meeting = stuck_meeting(s, &item->fact)};
    return (struct cause){0};
}

void verdict_wait(struct judge *j, int p, bool goes_on) {
    struct process *process = &j->stuck->of[p];
    process->wait = NULL;
    process->cause = (struct cause){0};
    int n = process->host == goes_on ? process->nwaits : 0;
    for (int w = 0; w < n && process->waits[w].kind < WAIT_EXIT; w++) {
        const struct wait *wait = &process->waits[w];
        struct cause own = cause_of(j, wait), *found = &process->cause;
        if (!process->wait ||
            (!found->call && (own.call || (!found->signals && own.signals)))) {
            process->wait = wait;
            *found = own;
        }
    }
}

static bool member_missing(struct judge *j, const struct process *process, int i) {
    const struct cause *cause = &process->cause;
    return process->wait->kind == WAIT_LAUNCH
               ? !stuck_launched_here(j->stuck, cause->call, cause->meeting, i)
               : !stuck_member_here(j->stuck, cause->meeting, i);
}

/* A process that keeps a wait of process p from ending; -1: nobody knows. */
static int blocker(struct judge *j, int p) {
    struct stuck *s = j->stuck;
    const struct process *process = &s->of[p];
    const struct wait *wait = process->wait;
    const struct cause *cause = &process->cause;
    if (!wait)
        return -1;
    for (int i = 0; cause->meeting && i < cause->meeting->n; i++)
        if (member_missing(j, process, i))
            return cause->meeting->of[i].who;
    if (cause->join) {
        const struct member_comm *comm = members_comm(j, cause->join->id);
        for (int q = 0; comm && q < s->n; q++) {
            bool joined = false;
            for (int r = 0; r < comm->nranks; r++)
                joined |= comm->of[r].joined && comm->of[r].world == q;
            if (!joined)
                return q;
        }
    }
    for (int i = 0; wait->kind == WAIT_MPI && i < wait->n; i++) {
        int peer = wait->ranks[i];
        if (!stuck_peer_can(s, p, wait, peer))
            return peer;
    }
    int stays = wait->kind == WAIT_LEAVE ? stuck_stays(j, p, wait, 0) : -1;
    return stays < 0 ? -1 : members_comm(j, wait->told->comm)->of[stays].world;
}

/* The process and the device of each rank of a communicator. */
static void places_of(struct judge *j, uint64_t id, int nranks, int *world, int *device) {
    const struct member_comm *comm = members_comm(j, id);
    for (int r = 0; r < nranks; r++) {
        world[r] = comm && r < comm->nranks ? comm->of[r].world : -1;
        device[r] = comm && r < comm->nranks ? comm->of[r].device : -1;
    }
}

static bool together(struct judge *j, const struct fact *call) {
    int *world = must_alloc(2 * (size_t)call->nranks * sizeof *world);
    places_of(j, call->comm, call->nranks, world, world + call->nranks);
    bool same = same_process(world, call->nranks);
    free(world);
    return same;
}

static void add_absent(struct text *text, const int *ranks, int n, bool of_comm,
                       const char *what) {
    if (n == 0)
        return;
    text_add(text, "; ");
    add_ranks(text, ranks, n);
    text_add(text, "%s %s not begun %s", of_comm ? " of the communicator" : "",
             n == 1 ? "has" : "have", what);
}

static void add_cause(struct judge *j, struct text *text, int p) {
    const struct process *process = &j->stuck->of[p];
    const struct wait *wait = process->wait;
    const struct cause *cause = &process->cause;
    if (cause->call) {
        const struct fact *call = cause->call;
        const struct meeting *m = cause->meeting;
        if (!moves_nothing(call->kind))
            text_add(text, " for %s at %s", fact_words(call), place(j, call->site));
        text_add(text, ", operation %llu on communicator %s",
                 (unsigned long long)call->index,
                 comm_words(j, call->comm, call->number));
        int *absent = must_alloc((size_t)m->n * sizeof *absent), n = 0;
        bool by_rank = together(j, call);
        for (int i = 0; i < m->n; i++)
            if (member_missing(j, process, i))
                absent[n++] = !by_rank && m->of[i].who >= 0 ? m->of[i].who
                              : m->from < 0                 ? i
                              : i == 0                      ? m->from
                                                            : m->to;
        add_absent(text, absent, n, by_rank,
                   call->kind == JUDGE_SEND   ? "the matching ncclRecv"
                   : call->kind == JUDGE_RECV ? "the matching ncclSend"
                                              : "this operation");
        free(absent);
    } else if (cause->signals) {
        text_add(text, " for %s%s at %s",
                 cause->signals->signals == AWAITS_SIGNALS ? "the signals of " : "",
                 cause->signals->call, place(j, cause->signals->fact.site));
    } else if (wait->kind == WAIT_LEAVE) {
        const struct member_comm *comm = members_comm(j, wait->told->comm);
        int n = 0, nranks = comm ? comm->nranks : 0;
        int *absent = must_alloc((size_t)nranks * sizeof *absent);
        for (int r = 0; (r = stuck_stays(j, p, wait, r)) >= 0; r++)
            absent[n++] = comm->of[r].world;
        text_add(text, ", of communicator %s",
                 comm_words(j, wait->told->comm, wait->told->comm_number));
        add_absent(text, absent, n, false, "the same call");
        free(absent);
    }
}

static bool waits_in(struct judge *j, int p, enum wait_kind kind) {
    const struct wait *wait = j->stuck->of[p].wait;
    return wait && wait->kind == kind;
}

static bool has_left(struct judge *j, int p, const struct fact *about) {
    const struct member_comm *comm = about ? members_comm(j, about->comm) : NULL;
    for (int r = 0; comm && r < comm->nranks; r++)
        if (comm->of[r].world == p && comm->of[r].left)
            return true;
    return about && waits_in(j, p, WAIT_LEAVE);
}

/* The call on which process p waits, if others have aborted or revoked its communicator,
 * and p has not. */
static const struct fact *keeps(struct judge *j, int p) {
    const struct process *process = &j->stuck->of[p];
    const struct fact *call = process->cause.call;
    for (int i = 0; !call && process->others && i < process->nops; i++) {
        const struct op *op = &process->ops[i];
        if (op->begins && !op->ends && members_given_up(j, op->told->fact.comm))
            call = &op->told->fact;
    }
    return call && members_given_up(j, call->comm) && !has_left(j, p, call) ? call : NULL;
}

/* The first few who keep it, and who have given it up. */
static void set_kept(struct judge *j, struct finding *f) {
    struct text text = {0};
    const struct member_comm *comm = NULL;
    for (int p = 0, n = 0; p < j->stuck->n && n < MANY; p++) {
        const struct fact *call = keeps(j, p);
        if (!call || (comm && members_comm(j, call->comm) != comm))
            continue;
        text_add(&text, "  rank %d has not given up communicator %d: %s at %s waits\n", p,
                 call->number, fact_words(call), place(j, call->site));
        comm = members_comm(j, call->comm);
        n++;
    }
    for (int r = 0, n = 0; comm && r < comm->nranks && n < MANY; r++) {
        const struct member *one = &comm->of[r];
        if (one->gives_up.call[0])
            text_add(&text, "%s rank %d in %s at %s", n++ ? "," : "  it was given up by",
                     one->world, one->gives_up.call, place(j, one->gives_up.site));
    }
    if (comm) {
        f->hint = HINT_one_aborts;
        text_add(&text, "\n");
    }
    set_lines(f, "kept", &text);
}

/* What process p has done on the communicator that it is about. */
static void add_part(struct judge *j, struct text *text, int p,
                     const struct fact *about) {
    const struct process *process = &j->stuck->of[p];
    const struct member_comm *comm = members_comm(j, about->comm);
    const struct member *member = NULL;
    for (int r = 0; comm && r < comm->nranks; r++)
        if (comm->of[r].world == p)
            member = &comm->of[r];
    struct called called = {0};
    if (member && member->left)
        called = member->end.called;
    for (int c = 0; c < process->ncomms; c++)
        if (process->comms[c].id == about->comm)
            called = process->comms[c].called;
    if (comm && !member)
        text_add(text, ", no rank of the communicator");
    else
        text_add(text, ", after %llu operation%s on the communicator",
                 (unsigned long long)called.ops, called.ops == 1 ? "" : "s");
    if (called.captured)
        text_add(text, " and %llu captured into a graph that was not launched, at %s",
                 (unsigned long long)called.captured, place(j, called.captured_site));
}

/* What failed first is often why the rest did; if it was not said already. */
static void add_first_failure(struct judge *j, struct text *text,
                              const struct process *process) {
    const struct state_head *head = process->head;
    if (head->unlooked == 0 ||
        (process->failure[0] && head->unlooked_site == head->failed_site))
        return;
    text_add(text, "; ");
    add_failures(j, text, head->unlooked,
                 (struct judge_at){head->unlooked_call, head->unlooked_site},
                 process->unlooked);
}

static void add_line(struct judge *j, struct text *text, int p,
                     const struct fact *about) {
    const struct process *process = &j->stuck->of[p];
    text_add(text, "  rank %d on %s: ", p,
             process->data ? process->head->host : rank_host(j, p));
    if (!process->data || (!process->wait && process->nwaits == 0)) {
        text_add(text, "computes\n");
        return;
    }
    const struct notice *join = process->cause.join;
    const struct wait *wait = process->wait ? process->wait : &process->waits[0];
    for (int w = 0; process_finished(process) && w < process->nwaits; w++)
        if (process->waits[w].kind >= WAIT_EXIT)
            wait = &process->waits[w];
    if (wait->kind == WAIT_EXIT)
        text_add(text, "has ended%s%s", wait->told->call[0] ? " without " : "",
                 wait->told->call);
    else if (wait->kind == WAIT_FINALIZE)
        text_add(text, "is in %s at %s", wait->told->call, place(j, wait->told->site));
    else if (join && strcmp(join->call, wait->told->call) == 0)
        text_add(text, "waits in %s(rank %d of %d ranks) at %s", wait->told->call,
                 join->rank, join->nranks, place(j, wait->told->site));
    else if (wait->told->call[0])
        text_add(text, "waits in %s at %s", wait->told->call, place(j, wait->told->site));
    else
        text_add(text, "waits");
    if (join && strcmp(join->call, wait->told->call) != 0)
        text_add(text, " for %s(rank %d of %d ranks) at %s", join->call, join->rank,
                 join->nranks, place(j, join->site));
    if (wait->kind < WAIT_EXIT && (process->cause.call || process->cause.signals ||
                                   (!about && wait->kind == WAIT_LEAVE)))
        add_cause(j, text, p);
    else if (about)
        add_part(j, text, p, about);
    if (process->failure[0])
        text_add(text, "; got an error at %s: %s", place(j, process->head->failed_site),
                 process->failure);
    add_first_failure(j, text, process);
    text_add(text, "\n");
}

/* Lines of all who are stuck or have ended; of everybody. */
static void add_lines(struct judge *j, struct text *text, const struct fact *about,
                      bool all) {
    int shown = 0, more = 0;
    for (int p = 0; p < j->stuck->n; p++) {
        const struct process *process = &j->stuck->of[p];
        if (!all && !process->wait && !process_finished(process))
            continue;
        if (shown++ < MANY)
            add_line(j, text, p, about);
        else
            more++;
    }
    if (more)
        text_add(text, "  and %d more\n", more);
}

/* Ranks that wait for other joins: a unique id that did not get about, or communicators
 * that are created in a different order. */
struct joins {
    bool differ, known, brought;
    const struct notice *other; // not ncclCommInitRank
    int nranks;                 // of the largest communicator
    int alone; // has come with an id that it made itself, and nobody else has; -1: nobody
    // Each id is to have as many ranks as the job, and its first so many are there, no
    // others; 0: not so.
    int counted;
};

/* Whether nobody else has come with the id, nor with another one that process p has made.
 */
static bool alone_with(struct judge *j, int p, uint64_t id) {
    for (int q = 0; q < j->stuck->n; q++) {
        const struct notice *join = j->stuck->of[q].cause.join;
        if (q != p && join && (join->id == id || members_id_maker(j, join->id) == p))
            return false;
    }
    return true;
}

/* How many ranks have come with an id, if they are its first ones. */
static int first_of(struct judge *j, uint64_t id) {
    int n = 0, highest = -1;
    for (int p = 0; p < j->stuck->n; p++) {
        const struct notice *join = j->stuck->of[p].cause.join;
        if (!join || join->id != id)
            continue;
        n++;
        highest = join->rank > highest ? join->rank : highest;
    }
    return highest == n - 1 ? n : 0;
}

static struct joins look_at_joins(struct judge *j) {
    struct joins found = {.known = true, .alone = -1};
    uint64_t first = 0;
    bool any = false;
    for (int p = 0; p < j->stuck->n; p++) {
        const struct notice *join = j->stuck->of[p].cause.join;
        if (!join)
            continue;
        uint64_t id = join->id;
        found.differ |= any && id != first;
        if (join->how != JUDGE_INITS)
            found.other = join;
        if (join->nranks > found.nranks)
            found.nranks = join->nranks;
        int maker = members_id_maker(j, id);
        int counted = join->nranks == j->nranks ? first_of(j, id) : 0;
        found.counted = !any || counted == found.counted ? counted : 0;
        first = any ? first : id;
        any = true;
        found.known &= maker >= 0;
        found.brought |= maker >= 0 && maker != p;
        if (maker == p && alone_with(j, p, id))
            found.alone = p;
    }
    return found;
}

static void report_join(struct judge *j) {
    struct joins joins = look_at_joins(j);
    struct text ranks = {0};
    struct finding f = finding(FINDING_setup_ranks_missing, 0, 0);
    set(&f, "call", "%s", joins.other ? joins.other->call : "ncclCommInitRank");
    if (joins.other && joins.other->how == JUDGE_GROWS) {
        f.hint = HINT_grows;
    } else if (joins.other) {
        f.name = joins.differ ? FINDING_setup_shrink_lists : FINDING_setup_ranks_missing;
        f.hint = joins.differ ? HINT_OF_FINDING : HINT_shrinks_without;
    } else if (joins.differ && joins.brought && joins.counted > 1) {
        f.hint = HINT_fewer_ranks_come;
    } else if (joins.differ && joins.known && joins.brought && joins.alone < 0) {
        f.name = FINDING_setup_other_order;
    } else if (joins.differ) {
        f.name = FINDING_setup_other_id;
        f.hint = joins.known && joins.brought ? HINT_own_id : HINT_OF_FINDING;
    } else if (joins.nranks > j->nranks) {
        f.hint = HINT_more_ranks_than_processes;
    }
    for (int p = 0; p < j->stuck->n && f.hint == HINT_OF_FINDING && !joins.differ; p++)
        if (waits_in(j, p, WAIT_MPI) &&
            !strcmp(j->stuck->of[p].wait->told->call, "MPI_Bcast"))
            f.hint = HINT_bcast_left_out;
    set(&f, "highest", "%d", joins.counted - 1);
    set(&f, "counted", "%d", joins.counted);
    set(&f, "alone", "%d", joins.alone);
    set(&f, "nranks", "%d", joins.nranks);
    set(&f, "processes", "%d process%s", j->nranks, j->nranks == 1 ? "" : "es");
    add_lines(j, &ranks, NULL, true);
    set_lines(&f, "ranks", &ranks);
    say(j, &f);
}

/* The program's own threads and MPI calls: rank 0 cannot prove anything, but nothing has
 * moved for long, and every rank waits. */
static void report_standstill(struct judge *j) {
    struct text ranks = {0};
    struct finding f = finding(FINDING_missing_standstill, 0, 0);
    set(&f, "seconds", "%g", j->options.timeout);
    add_lines(j, &ranks, NULL, true);
    set_lines(&f, "ranks", &ranks);
    for (int p = 0; p < j->stuck->n; p++) {
        const struct state_op *op = j->stuck->of[p].cause.signals;
        if (op)
            f.hint = op->signals == AWAITS_SIGNALS ? HINT_signals : HINT_barriers;
    }
    set_kept(j, &f);
    say(j, &f);
}

/* From one to who blocks it, until somebody comes twice: that is a cycle. It is none if
 * somebody has ended, or waits for it is not known whom, or for a call of its own; nor if
 * one has given its communicators up, and the other has a call left. */
static int cycle_from(struct judge *j, int p, const struct fact *about) {
    struct stuck *s = j->stuck;
    bool *passed = must_alloc((size_t)s->n);
    while (p >= 0 && !passed[p]) {
        passed[p] = true;
        p = blocker(j, p);
        if (p >= 0 && (process_finished(&s->of[p]) || !s->of[p].data || s->of[p].host ||
                       has_left(j, p, about)))
            p = -1;
    }
    free(passed);
    return p >= 0 && blocker(j, p) != p ? p : -1;
}

/* What it is called: after the call, if it is about one. */
static enum finding_name name_of(const struct fact *about, bool cycle) {
    return cycle                         ? FINDING_deadlock_cycle
           : about && pairs(about->kind) ? FINDING_deadlock_pair
           : about                       ? FINDING_missing_call
                                         : FINDING_missing_wait;
}

static void set_title(struct judge *j, struct finding *f, int first,
                      const struct fact *about) {
    set(f, "call", "%s", j->stuck->of[first].wait->told->call);
    if (!about)
        return;
    set(f, "words", "%s", fact_words(about));
    set(f, "operation", "%llu", (unsigned long long)about->index);
    set(f, "comm", "%s", comm_words(j, about->comm, about->number));
    set(f, "one", "%s", about->kind == JUDGE_SEND ? "send" : "receive");
    set(f, "other", "%s", about->kind == JUDGE_SEND ? "receive" : "send");
}

static enum hint_name hint_for_pair(struct judge *j, bool cycle) {
    bool in_mpi = false, grouped = true;
    for (int q = 0; q < j->stuck->n; q++) {
        const struct fact *call = j->stuck->of[q].cause.call;
        in_mpi |= waits_in(j, q, WAIT_MPI);
        grouped &= !call || call->grouped;
    }
    return cycle && in_mpi ? HINT_mpi_and_nccl : grouped ? HINT_peers : HINT_together;
}

/* Where it is about no call of NCCL. */
static enum hint_name hint_for_waits(struct judge *j) {
    bool message = false;
    for (int q = 0; q < j->stuck->n; q++) {
        const struct wait *wait = j->stuck->of[q].wait;
        if (waits_in(j, q, WAIT_LEAVE))
            return HINT_leaves;
        message |= wait && stuck_is_message(wait);
    }
    return message ? HINT_messages : HINT_mpi_calls;
}

/* All ranks of the call's communicator are one process: a thread may have made the first
 * of its calls without a group. */
static bool in_one_process(struct judge *j, const struct fact *about) {
    const struct member_comm *comm = members_comm(j, about->comm);
    for (int r = 1; comm && r < comm->nranks; r++)
        if (comm->of[r].world != comm->of[0].world)
            return false;
    return comm && comm->nranks > 1;
}

static enum hint_name hint_for(struct judge *j, const struct fact *about, bool cycle) {
    return !about                     ? hint_for_waits(j)
           : pairs(about->kind)       ? hint_for_pair(j, cycle)
           : in_one_process(j, about) ? HINT_one_thread
                                      : HINT_same_calls;
}

static void add_size_of(struct judge *j, struct text *text, const struct fact *call) {
    int *world = must_alloc(2 * (size_t)call->nranks * sizeof *world);
    places_of(j, call->comm, call->nranks, world, world + call->nranks);
    add_size(text, comm_words(j, call->comm, call->number), call->nranks, world,
             world + call->nranks);
    free(world);
}

static void set_cycle(struct judge *j, struct finding *f, int cycle) {
    struct text text = {0};
    int q = cycle;
    text_add(&text, "  The cycle: rank %d", cycle);
    do {
        q = blocker(j, q);
        text_add(&text, " waits for rank %d%s", q, q == cycle ? ".\n" : ", which");
    } while (q != cycle);
    set_lines(f, "cycle", &text);
}

/* NCCL is asked to launch it, and does not come back: no call but the first does that. */
static void set_first_call(struct judge *j, struct finding *f, int p,
                           const struct fact *about) {
    if (!about || !waits_in(j, p, WAIT_LAUNCH) || moves_nothing(about->kind) ||
        (about->seq > 1 && !pairs(about->kind)))
        return;
    set(f, "first_call", "%s",
        pairs(about->kind)
            ? "The first send and receive between two ranks connect them: the call itself"
              " waits for both."
            : "The first collective of a communicator connects its ranks: the call itself"
              " waits for all.");
}

static void report_stuck(struct judge *j, int first) {
    struct text ranks = {0}, size = {0};
    const struct fact *about = j->stuck->of[first].cause.call;
    int cycle = cycle_from(j, first, about);
    struct finding f = finding(name_of(about, cycle >= 0), 0, 0);
    set_title(j, &f, first, about);
    add_lines(j, &ranks, about, j->stuck->of[first].host);
    set_lines(&f, "ranks", &ranks);
    if (cycle >= 0)
        set_cycle(j, &f, cycle);
    if (about)
        add_size_of(j, &size, about);
    set_lines(&f, "size", &size);
    set_first_call(j, &f, first, about);
    f.hint = hint_for(j, about, cycle >= 0);
    set_kept(j, &f);
    if (j->stuck->of[first].wait->told->aborts)
        f.hint = HINT_aborts_in_turn;
    say(j, &f);
}

/* Perhaps by way of others. */
static bool waits_for(struct judge *j, int q, int p) {
    for (int n = 0; n < j->stuck->n && q >= 0 && q != p; n++)
        q = blocker(j, q);
    return q == p;
}

void verdict_ended(struct judge *j, int p, struct judge_at at) {
    static const double LONG = 1; // seconds
    struct text ranks = {0}, wait = {0};
    int *who = must_alloc((size_t)j->stuck->n * sizeof *who), n = 0;
    const struct process *of = j->stuck->of;
    for (int q = 0; q < j->stuck->n; q++)
        if (q != p && of[q].wait && (of[q].cause.call || of[q].cause.join) &&
            now(j) - of[q].since > LONG && waits_for(j, q, p) &&
            (n == 0 || of[q].wait->told->site == of[who[0]].wait->told->site))
            who[n++] = q;
    if (n > 0) {
        const struct process *first = &of[who[0]];
        struct finding f = finding(FINDING_note_ended, 0, 0);
        add_ranks(&ranks, who, n);
        set_lines(&f, "ranks", &ranks);
        set(&f, "seconds", "%.1f", now(j) - first->since);
        text_add(&wait, "%s at %s", first->wait->told->call,
                 place(j, first->wait->told->site));
        add_cause(j, &wait, who[0]);
        set_lines(&f, "wait", &wait);
        set(&f, "ended", "%d", p);
        set(&f, "by", "%s", at.call);
        if (at.site)
            set_at(j, &f, "by", at);
        say(j, &f);
    }
    free(who);
}

void verdict(struct judge *j, int p) {
    if (p < 0)
        report_standstill(j);
    else if (j->stuck->of[p].cause.join)
        report_join(j);
    else
        report_stuck(j, p);
}
