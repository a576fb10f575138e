/*
 * can_go_on.c: on rank 0: who can go on.
 *
 * A process that computes can; one that waits can if those can for whom it waits; an
 * operation begins when those before it have ended, and ends when all of its ranks have
 * begun. That is repeated until nothing is added. Where something is not known, it can go
 * on.
 */
#include "say/report.h"
#include "say/words.h"
#include "stuck/stuck.h"

/* Whether process p may yet make calls that it has not made. */
bool stuck_can_call(const struct stuck *s, int p) {
    return !s->of[p].data || (s->of[p].host && !process_finished(&s->of[p]));
}

bool stuck_member_here(const struct stuck *s, const struct meeting *m, int i) {
    switch (m->of[i].status) {
    case NEVER: return false;
    case BEGUN: return true;
    case WITH_OP: return m->of[i].op->begins;
    case BY_HOST: return stuck_can_call(s, m->of[i].who);
    default: return true;
    }
}

/* Whether it has captured calls, too: one of them may be this one. */
static bool captures(const struct stuck *s, const struct meeting *m, int i) {
    int rank = m->from < 0 ? i : i == 0 ? m->from : m->to;
    const struct state_comm *told = stuck_told_of(s, m->of[i].who, m->comm, rank);
    return told && told->called.captured_site != 0;
}

/* The call has been made, or still can be. */
bool stuck_launched_here(const struct stuck *s, const struct fact *call,
                         const struct meeting *m, int i) {
    return m->of[i].status == WITH_OP || (call->captured && captures(s, m, i)) ||
           stuck_member_here(s, m, i);
}

/* Nobody knows whom p waits for: anybody who can go on may be it. */
static bool another_can(const struct stuck *s, int p) {
    for (int q = 0; q < s->n; q++)
        if (q != p && stuck_can_call(s, q))
            return true;
    return false;
}

bool stuck_is_message(const struct wait *wait) {
    return wait->told->way == JUDGE_SENDS || wait->told->way == JUDGE_RECEIVES;
}

/* Whether a process that is in `other` does meanwhile what `wait` of process p needs: all
 * that it has under way may be something else. */
static bool may_meet(int p, const struct wait *wait, const struct process *of,
                     const struct wait *other) {
    if (other->told->way == JUDGE_MORE)
        return true;
    if (wait->told->way == JUDGE_MEETS)
        return wait->told->meeting == 0 || of->head->meetings >= wait->told->meeting;
    bool with = other->n != 1 || other->ranks[0] == p;
    return !stuck_is_message(wait) ||
           (stuck_is_message(other) && other->told->way != wait->told->way && with);
}

/* Whether process q may yet do what a wait of process p in MPI needs. In MPI it does more
 * than it waits for; but not for ever, if all others wait, and not for a device that
 * works on. */
bool stuck_peer_can(const struct stuck *s, int p, const struct wait *wait, int q) {
    if (q == p || q < 0 || q >= s->n || stuck_can_call(s, q))
        return true;
    const struct process *other = &s->of[q];
    bool in_time = !s->silent || another_can(s, p);
    for (int w = 0; in_time && w < other->nwaits; w++)
        if (other->waits[w].kind == WAIT_MPI &&
            may_meet(p, wait, other, &other->waits[w]))
            return true;
    return false;
}

int stuck_stays(struct judge *j, int p, const struct wait *wait, int rank) {
    const struct stuck *s = j->stuck;
    const struct member_comm *comm = members_comm(j, wait->told->comm);
    for (; comm && rank < comm->nranks; rank++) {
        int q = comm->of[rank].world;
        if (!comm->of[rank].left && q >= 0 && q < s->n && !stuck_can_call(s, q) &&
            strcmp(rank_host(j, q), s->of[p].head->host) == 0)
            return rank;
    }
    return -1;
}

/* How many collective calls a member has made; -1: not known. */
static int64_t collectives_of(const struct stuck *s, uint64_t id,
                              const struct member *member, int rank) {
    const struct state_comm *told = stuck_told_of(s, member->world, id, rank);
    return member->left ? (int64_t)member->end.collectives
           : told       ? (int64_t)told->collectives
                        : -1;
}

/* Process p asks for a communicator that has not come so far yet. If all its ranks are
 * there, have made as many collective calls and, if one has given it up, all have, then
 * nobody is missing: the library is at work, which may take its time. */
static bool all_have_called(struct judge *j, int p, const struct wait *wait) {
    const struct stuck *s = j->stuck;
    const struct member_comm *comm = members_comm(j, wait->told->comm);
    int64_t most = 0;
    bool left = false;
    if (!comm)
        return wait->told->comm != 0; // all have given it up
    for (int i = 0; i < s->of[p].npairs; i++)
        if (s->of[p].pairs[i].comm == wait->told->comm)
            return false; // a message may be what is missing
    for (int r = 0; r < comm->nranks; r++) {
        int64_t calls = collectives_of(s, wait->told->comm, &comm->of[r], r);
        most = calls > most ? calls : most;
        left |= comm->of[r].left;
    }
    for (int r = 0; r < comm->nranks; r++)
        if (comm->of[r].world < 0 || comm->of[r].left != left ||
            collectives_of(s, wait->told->comm, &comm->of[r], r) < most)
            return false;
    return true;
}

static bool ops_end(const struct wait *wait) {
    for (int i = 0; i < wait->n; i++)
        if (!wait->ops[i]->ends)
            return false;
    return true;
}

static bool join_can(struct judge *j, const struct notice *join) {
    const struct member_comm *comm = members_comm(j, join->id);
    return !comm || comm->complete || comm->nranks != join->nranks ||
           another_can(j->stuck, -1);
}

const struct recent_call *stuck_missing(struct judge *j, const struct wait *wait) {
    for (int i = 0; i < wait->n; i++) {
        const struct recent_call *item = &wait->launches[i];
        if (item->join) {
            if (!join_can(j, &item->notice))
                return item;
            continue;
        }
        const struct meeting *m = stuck_meeting(j->stuck, &item->fact);
        for (int r = 0; r < m->n; r++)
            if (!stuck_launched_here(j->stuck, &item->fact, m, r))
                return item;
    }
    return NULL;
}

bool stuck_wait_can(struct judge *j, int p, const struct wait *wait) {
    const struct stuck *s = j->stuck;
    // It is free to do something else between two looks; but not for ever.
    bool early = s->quiet < j->options.timeout;
    switch (wait->kind) {
    case WAIT_ORDER: return (wait->told->poll && early) || ops_end(wait);
    case WAIT_LAUNCH: return (wait->told->poll && early) || !stuck_missing(j, wait);
    case WAIT_LEAVE: return stuck_stays(j, p, wait, 0) < 0;
    case WAIT_COMM: return early || another_can(s, p) || all_have_called(j, p, wait);
    case WAIT_MPI:
        if (wait->n < 0 || wait->told->poll)
            return early || another_can(s, p);
        if (wait->n == 1 && wait->ranks[0] == p)
            return !s->silent; // for its own message, which only another thread can take
        for (int i = 0; i < wait->n; i++) {
            int q = wait->ranks[i];
            if (wait->told->one_of && wait->n > 1 && q == p)
                continue; // what it has sent to itself has come
            if (stuck_peer_can(s, p, wait, q) == (wait->told->one_of != 0))
                return wait->told->one_of;
        }
        return !wait->told->one_of;
    default: return true;
    }
}

static bool host_can(struct judge *j, int p) {
    const struct process *process = &j->stuck->of[p];
    if (!process->data || process->head->computing > 0 || process->nwaits == 0)
        return true;
    for (int w = 0; w < process->nwaits; w++)
        if (stuck_wait_can(j, p, &process->waits[w]))
            return true;
    return false;
}

/* Operations that begin now, and are to be looked at. */
struct ready {
    struct op **at;
    size_t n, size;
};

static void add_ready(struct ready *ready, struct op *op) {
    ROOM(ready->at, ready->n, &ready->size);
    ready->at[ready->n++] = op;
}

static void end_op(struct ready *ready, struct op *op) {
    if (op->ends)
        return;
    op->ends = true;
    for (int i = 0; i < op->nafter; i++)
        if (--op->after[i]->open == 0)
            add_ready(ready, op->after[i]);
}

static void one_more_here(struct ready *ready, struct meeting *m) {
    if (++m->here < m->n)
        return;
    for (int i = 0; i < m->n; i++)
        if (m->of[i].status == WITH_OP)
            end_op(ready, m->of[i].op);
}

static void begin_ops(struct ready *ready) {
    while (ready->n > 0) {
        struct op *op = ready->at[--ready->n];
        op->begins = true;
        if (op->meeting)
            one_more_here(ready, op->meeting);
    }
}

/* Who sends the signals that an operation waits for, and which have come? And what others
 * have aborted this process may abort, too. */
static bool end_others(struct judge *j, struct ready *ready,
                       const struct process *process) {
    int p = process->rank;
    bool signals = j->stuck->quiet < j->options.timeout || another_can(j->stuck, p);
    bool aborts = stuck_can_call(j->stuck, p), news = false;
    for (int i = 0; i < process->nops; i++) {
        struct op *op = &process->ops[i];
        if (op->begins && !op->ends &&
            (op->told->signals ? signals
                               : aborts && members_given_up(j, op->told->fact.comm))) {
            end_op(ready, op);
            news = true;
        }
    }
    return news;
}

static void mark_none(struct stuck *s) {
    for (int p = 0; p < s->n; p++) {
        struct process *process = &s->of[p];
        process->host = !process->data;
        for (int i = 0; i < process->nops; i++) {
            struct op *op = &process->ops[i];
            op->begins = op->ends = false;
            op->open = op->nbefore + op->held;
        }
    }
    for (size_t k = 0; k < s->nmeetings; k++) {
        struct meeting *m = s->meetings[k];
        m->here = 0;
        for (int i = 0; i < m->n; i++)
            m->here += m->of[i].status != WITH_OP && stuck_member_here(s, m, i);
    }
}

/* Its threads can go on: what they were to launch is launched, and all who wait for it to
 * make a call hear that it can. */
static void mark_host(struct stuck *s, struct ready *ready, struct process *process) {
    process->host = true;
    for (int i = 0; i < process->nops; i++)
        if (process->ops[i].held && --process->ops[i].open == 0)
            add_ready(ready, &process->ops[i]);
    for (size_t k = 0; stuck_can_call(s, process->rank) && k < process->nawaited; k++)
        one_more_here(ready, process->awaited[k]);
}

void can_go_on_mark(struct judge *j) {
    struct stuck *s = j->stuck;
    struct ready ready = {0};
    mark_none(s);
    for (int p = 0; p < s->n; p++)
        for (int i = 0; i < s->of[p].nops; i++)
            if (s->of[p].ops[i].open == 0 && !s->of[p].head->busy)
                add_ready(&ready, &s->of[p].ops[i]);
    begin_ops(&ready);
    for (bool news = true; news;) {
        news = false;
        for (int p = 0; p < s->n; p++) {
            news |= s->of[p].others && end_others(j, &ready, &s->of[p]);
            if (!s->of[p].host && host_can(j, p)) {
                mark_host(s, &ready, &s->of[p]);
                news = true;
            }
            begin_ops(&ready);
        }
    }
    free(ready.at);
}
