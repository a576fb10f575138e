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

struct meeting *stuck_meeting(struct stuck *s, const struct fact *fact) {
    bool pair = pairs(fact->kind), send = fact->kind == JUDGE_SEND;
    int from = !pair ? -1 : send ? fact->rank : fact->root;
    int to = !pair ? -1 : send ? fact->root : fact->rank;
    uint64_t key = mixed(fact->comm,
                         mixed(fact->seq, (uint64_t)(uint32_t)from << 32 | (uint32_t)to));
    struct meeting *first = map_get(&s->by_key, key);
    for (struct meeting *m = first; m; m = m->next)
        if (m->comm == fact->comm && m->seq == fact->seq && m->from == from &&
            m->to == to)
            return m;
    struct meeting *m = must_alloc(sizeof *m);
    m->comm = fact->comm;
    m->seq = fact->seq;
    m->from = from;
    m->to = to;
    m->n = pair ? 2 : fact->nranks;
    m->status = must_alloc((size_t)m->n);
    m->who = must_alloc((size_t)m->n * sizeof *m->who);
    m->op = must_alloc((size_t)m->n * sizeof *m->op);
    m->number = (int)s->nmeetings;
    m->next = first;
    map_put(&s->by_key, key, m);
    ROOM(s->meetings, s->nmeetings, &s->meetings_size);
    s->meetings[s->nmeetings++] = m;
    return m;
}

static int member_of(const struct fact *fact) {
    return pairs(fact->kind) ? fact->kind == JUDGE_RECV : fact->rank;
}

/* Of a member that has left, after so many calls. What it aborted under way may have
 * ended all the same, but then nobody waits for it long. */
static enum status left_at(const struct stuck *s, const struct member *member,
                           uint64_t seq, uint64_t calls, uint64_t known) {
    if (calls < seq)
        return NEVER;
    if (member->how != JUDGE_ABORTED || known >= seq)
        return BEGUN;
    return s->silent ? NEVER : UNKNOWN;
}

/* What a process has told of a communicator of its own; NULL: nothing. */
static const struct state_comm *told_of(const struct stuck *s, int p, uint64_t id,
                                        int rank) {
    const struct process *process = p < 0 || p >= s->n ? NULL : &s->of[p];
    for (int c = 0; process && process->data && c < process->head->n[COMMS]; c++)
        if (process->comms[c].id == id && process->comms[c].rank == rank)
            return &process->comms[c];
    return NULL;
}

/* What is known of a member's call that is not among the operations it has told of. */
static enum status status_of(struct judge *j, const struct meeting *m, int i, int *who) {
    struct stuck *s = j->stuck;
    int rank = m->from < 0 ? i : i == 0 ? m->from : m->to;
    int peer = i == 0 ? m->to : m->from;
    const struct member_comm *comm = members_comm(j, m->comm);
    *who = -1;
    if (!comm || rank >= comm->nranks || comm->of[rank].world < 0 ||
        comm->of[rank].world >= s->n)
        return UNKNOWN;
    const struct member *member = &comm->of[rank];
    const bool left = member->left && member->how != JUDGE_REVOKED; // else it may split
    *who = member->world;
    if (left && m->from < 0)
        return left_at(s, member, m->seq, member->end.collectives, member->end.known);
    const struct pair_count *pair = members_pair(member, peer, i == 0);
    if (left)
        return pair ? left_at(s, member, m->seq, pair->n, pair->known) : NEVER;
    const struct process *process = &s->of[member->world];
    if (!process->data)
        return UNKNOWN;
    // It is done, or comes after what is described.
    const enum status begun = process->head->more ? UNKNOWN : BEGUN;
    const struct state_comm *told = told_of(s, member->world, m->comm, rank);
    if (told && m->from < 0)
        return told->collectives < m->seq ? BY_HOST : begun;
    for (int c = 0; c < process->head->n[PAIRS] && m->from >= 0; c++) {
        const struct pair_count *own = &process->pairs[c];
        if (own->comm == m->comm && own->rank == rank && own->peer == peer &&
            own->what == (i == 0))
            return own->n < m->seq ? BY_HOST : begun;
    }
    return BY_HOST;
}

/* What comes after each operation. */
static void turn_round(struct process *process) {
    int n = process->head->n[OPS];
    struct op_mark *marks = process->marks;
    for (int i = 0; i < n; i++)
        for (int b = 0; b < process->ops[i].nbefore; b++)
            marks[process->ints[process->ops[i].first_before + b] + 1].first_behind++;
    for (int i = 0; i < n; i++)
        marks[i + 1].first_behind += marks[i].first_behind;
    process->behind = must_alloc((size_t)marks[n].first_behind * sizeof *process->behind);
    int *next = must_alloc((size_t)n * sizeof *next);
    for (int i = 0; i < n; i++)
        for (int b = 0; b < process->ops[i].nbefore; b++) {
            int before = process->ints[process->ops[i].first_before + b];
            process->behind[marks[before].first_behind + next[before]++] = i;
        }
    free(next);
}

/* Finds the meetings of what a call is to launch. Nothing of it has begun while the call
 * waits to connect ranks: something is the first between them. */
static void hold_launches(struct stuck *s, int p, const struct state_wait *wait) {
    struct process *process = &s->of[p];
    bool connects = false;
    for (int i = wait->first; i < wait->first + wait->n; i++)
        connects |= !process->items[i].join && process->items[i].fact.seq == 1;
    for (int i = wait->first; i < wait->first + wait->n; i++) {
        const struct fact *fact = &process->items[i].fact;
        if (process->items[i].join)
            continue;
        const struct meeting *m = stuck_meeting(s, fact);
        int member = member_of(fact);
        if (connects && !wait->poll && member >= 0 && member < m->n &&
            m->status[member] == WITH_OP && m->who[member] == p)
            process->marks[m->op[member]].held = true;
    }
}

void marks_find(struct judge *j) {
    struct stuck *s = j->stuck;
    for (int p = 0; p < s->n; p++) {
        struct process *process = &s->of[p];
        process->nawaited = 0;
        if (process->data && !process->behind)
            turn_round(process);
        for (int i = 0; process->data && i < process->head->n[OPS]; i++) {
            const struct state_op *op = &process->ops[i];
            process->others |= op->signals || members_given_up(j, op->fact.comm);
            if (op->signals)
                continue;
            struct meeting *m = stuck_meeting(s, &op->fact);
            int member = member_of(&op->fact);
            if (process->head->busy || member < 0 || member >= m->n)
                continue; // busy: and may end them
            process->marks[i].meeting = m->number;
            m->status[member] = WITH_OP;
            m->who[member] = p;
            m->op[member] = i;
        }
        for (int w = 0; process->data && w < process->head->n[WAITS]; w++)
            if (process->waits[w].kind == WAIT_LAUNCH)
                hold_launches(s, p, &process->waits[w]);
    }
    for (size_t k = 0; k < s->nmeetings; k++) {
        struct meeting *m = s->meetings[k];
        for (int i = 0; i < m->n; i++) {
            if (m->status[i] == WITH_OP)
                continue;
            m->status[i] = (unsigned char)status_of(j, m, i, &m->who[i]);
            struct process *process = m->who[i] < 0 ? NULL : &s->of[m->who[i]];
            m->lost += m->status[i] == NEVER;
            if (m->status[i] != BY_HOST)
                continue;
            m->lost += stuck_finished(process) && process->head->computing == 0;
            ROOM(process->awaited, process->nawaited, &process->awaited_size);
            process->awaited[process->nawaited++] = m->number;
        }
    }
}

void marks_forget(struct stuck *s) {
    for (size_t k = 0; k < s->nmeetings; k++) {
        struct meeting *m = s->meetings[k];
        free(m->status);
        free(m->who);
        free(m->op);
        free(m);
    }
    s->nmeetings = 0;
    map_free(&s->by_key);
}

bool stuck_finished(const struct process *process) {
    for (int w = 0; process->data && w < process->head->n[WAITS]; w++)
        if (process->waits[w].kind >= WAIT_EXIT)
            return true;
    return false;
}

/* Whether process p may yet make calls that it has not made. */
bool stuck_can_call(const struct stuck *s, int p) {
    return !s->of[p].data || (s->of[p].host && !stuck_finished(&s->of[p]));
}

bool stuck_member_here(const struct stuck *s, const struct meeting *m, int i) {
    switch ((enum status)m->status[i]) {
    case NEVER: return false;
    case BEGUN: return true;
    case WITH_OP: return s->of[m->who[i]].marks[m->op[i]].begins;
    case BY_HOST: return stuck_can_call(s, m->who[i]);
    default: return true;
    }
}

/* Whether it has captured calls, too: one of them may be this one. */
static bool captures(const struct stuck *s, const struct meeting *m, int i) {
    int rank = m->from < 0 ? i : i == 0 ? m->from : m->to;
    const struct state_comm *told = told_of(s, m->who[i], m->comm, rank);
    return told && told->called.captured_site != 0;
}

/* The call has been made, or still can be. */
bool stuck_launched_here(const struct stuck *s, const struct fact *call,
                         const struct meeting *m, int i) {
    return m->status[i] == WITH_OP || (call->captured && captures(s, m, i)) ||
           stuck_member_here(s, m, i);
}

/* Nobody knows whom p waits for: anybody who can go on may be it. */
static bool another_can(const struct stuck *s, int p) {
    for (int q = 0; q < s->n; q++)
        if (q != p && stuck_can_call(s, q))
            return true;
    return false;
}

bool stuck_in_mpi(const struct process *process) {
    for (int w = 0; process->data && w < process->head->n[WAITS]; w++)
        if (process->waits[w].kind == WAIT_MPI)
            return true;
    return false;
}

bool stuck_is_message(const struct state_wait *wait) {
    return wait->way == JUDGE_SENDS || wait->way == JUDGE_RECEIVES;
}

/* Whether a process that is in `other` does meanwhile what `wait` of process p needs: all
 * that it has under way may be something else. */
static bool may_meet(int p, const struct state_wait *wait, const struct process *of,
                     const struct state_wait *other) {
    if (other->way == JUDGE_MORE)
        return true;
    if (wait->way == JUDGE_MEETS)
        return wait->meeting == 0 || of->head->meetings >= wait->meeting;
    bool with = other->n != 1 || of->ints[other->first] == p;
    return !stuck_is_message(wait) ||
           (stuck_is_message(other) && other->way != wait->way && with);
}

/* Whether process q may yet do what a wait of process p in MPI needs. In MPI it does more
 * than it waits for; but not for ever, if all others wait, and not for a device that
 * works on. */
bool stuck_peer_can(const struct stuck *s, int p, const struct state_wait *wait, int q) {
    if (q == p || q < 0 || q >= s->n || stuck_can_call(s, q))
        return true;
    const struct process *other = &s->of[q];
    bool in_time = !s->silent || another_can(s, p);
    for (int w = 0; in_time && other->data && w < other->head->n[WAITS]; w++)
        if (other->waits[w].kind == WAIT_MPI &&
            may_meet(p, wait, other, &other->waits[w]))
            return true;
    return false;
}

int stuck_stays(struct judge *j, int p, const struct state_wait *wait, int rank) {
    const struct stuck *s = j->stuck;
    const struct member_comm *comm = members_comm(j, wait->comm);
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
    const struct state_comm *told = told_of(s, member->world, id, rank);
    return member->left ? (int64_t)member->end.collectives
           : told       ? (int64_t)told->collectives
                        : -1;
}

/* Process p asks for a communicator that has not come so far yet. If all its ranks are
 * there, have made as many collective calls and, if one has given it up, all have, then
 * nobody is missing: the library is at work, which may take its time. */
static bool all_have_called(struct judge *j, int p, const struct state_wait *wait) {
    const struct stuck *s = j->stuck;
    const struct member_comm *comm = members_comm(j, wait->comm);
    int64_t most = 0;
    bool left = false;
    if (!comm)
        return wait->comm != 0; // all have given it up
    for (int i = 0; i < s->of[p].head->n[PAIRS]; i++)
        if (s->of[p].pairs[i].comm == wait->comm)
            return false; // a message may be what is missing
    for (int r = 0; r < comm->nranks; r++) {
        int64_t calls = collectives_of(s, wait->comm, &comm->of[r], r);
        most = calls > most ? calls : most;
        left |= comm->of[r].left;
    }
    for (int r = 0; r < comm->nranks; r++)
        if (comm->of[r].world < 0 || comm->of[r].left != left ||
            collectives_of(s, wait->comm, &comm->of[r], r) < most)
            return false;
    return true;
}

static bool ops_end(const struct process *process, const struct state_wait *wait) {
    for (int i = wait->first; i < wait->first + wait->n; i++)
        if (!process->marks[process->ints[i]].ends)
            return false;
    return true;
}

static bool join_can(struct judge *j, const struct notice *join) {
    const struct member_comm *comm = members_comm(j, join->id);
    return !comm || comm->complete || comm->nranks != join->nranks ||
           another_can(j->stuck, -1);
}

const struct recent_call *stuck_missing(struct judge *j, const struct process *process,
                                        const struct state_wait *wait) {
    for (int i = wait->first; i < wait->first + wait->n; i++) {
        const struct recent_call *item = &process->items[i];
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

bool stuck_wait_can(struct judge *j, int p, const struct state_wait *wait) {
    const struct stuck *s = j->stuck;
    const struct process *process = &s->of[p];
    // It is free to do something else between two looks; but not for ever.
    bool early = s->quiet < j->options.timeout;
    switch ((enum wait_kind)wait->kind) {
    case WAIT_ORDER: return (wait->poll && early) || ops_end(process, wait);
    case WAIT_LAUNCH: return (wait->poll && early) || !stuck_missing(j, process, wait);
    case WAIT_LEAVE: return stuck_stays(j, p, wait, 0) < 0;
    case WAIT_COMM: return early || another_can(s, p) || all_have_called(j, p, wait);
    case WAIT_MPI:
        if (wait->n < 0 || wait->poll)
            return early || another_can(s, p);
        if (wait->n == 1 && process->ints[wait->first] == p)
            return !s->silent; // for its own message, which only another thread can take
        for (int i = 0; i < wait->n; i++) {
            int q = process->ints[wait->first + i];
            if (wait->one_of && wait->n > 1 && q == p)
                continue; // what it has sent to itself has come
            if (stuck_peer_can(s, p, wait, q) == (wait->one_of != 0))
                return wait->one_of;
        }
        return !wait->one_of;
    default: return true;
    }
}

static bool host_can(struct judge *j, int p) {
    const struct process *process = &j->stuck->of[p];
    if (!process->data || process->head->computing > 0 || process->head->n[WAITS] == 0)
        return true;
    for (int w = 0; w < process->head->n[WAITS]; w++)
        if (stuck_wait_can(j, p, &process->waits[w]))
            return true;
    return false;
}

/* Operations that begin now, and are to be looked at. */
struct front {
    struct ready {
        int process, op;
    } * at;
    size_t n, size;
};

static void push(struct front *front, int p, int i) {
    ROOM(front->at, front->n, &front->size);
    front->at[front->n++] = (struct ready){p, i};
}

static void end_op(struct stuck *s, struct front *front, int p, int i) {
    struct process *process = &s->of[p];
    struct op_mark *marks = process->marks;
    if (marks[i].ends)
        return;
    marks[i].ends = true;
    for (int k = marks[i].first_behind; k < marks[i + 1].first_behind; k++)
        if (--marks[process->behind[k]].open == 0)
            push(front, p, process->behind[k]);
}

static void one_more_here(struct stuck *s, struct front *front, struct meeting *m) {
    if (++m->here < m->n)
        return;
    for (int i = 0; i < m->n; i++)
        if (m->status[i] == WITH_OP)
            end_op(s, front, m->who[i], m->op[i]);
}

static void begin_ops(struct stuck *s, struct front *front) {
    while (front->n > 0) {
        struct ready ready = front->at[--front->n];
        struct process *process = &s->of[ready.process];
        process->marks[ready.op].begins = true;
        if (!process->ops[ready.op].signals)
            one_more_here(s, front, s->meetings[process->marks[ready.op].meeting]);
    }
}

/* Who sends the signals that an operation waits for, and which have come? And what others
 * have aborted this process may abort, too. */
static bool end_others(struct judge *j, struct front *front, int p) {
    struct process *process = &j->stuck->of[p];
    bool signals = j->stuck->quiet < j->options.timeout || another_can(j->stuck, p);
    bool aborts = stuck_can_call(j->stuck, p), news = false;
    for (int i = 0; i < process->head->n[OPS]; i++)
        if (process->marks[i].begins && !process->marks[i].ends &&
            (process->ops[i].signals
                 ? signals
                 : aborts && members_given_up(j, process->ops[i].fact.comm))) {
            end_op(j->stuck, front, p, i);
            news = true;
        }
    return news;
}

static void mark_none(struct stuck *s) {
    for (int p = 0; p < s->n; p++) {
        struct process *process = &s->of[p];
        process->host = !process->data;
        for (int i = 0; process->data && i < process->head->n[OPS]; i++) {
            process->marks[i].begins = process->marks[i].ends = false;
            process->marks[i].open = process->ops[i].nbefore + process->marks[i].held;
        }
    }
    for (size_t k = 0; k < s->nmeetings; k++) {
        struct meeting *m = s->meetings[k];
        m->here = 0;
        for (int i = 0; i < m->n; i++)
            m->here += m->status[i] != WITH_OP && stuck_member_here(s, m, i);
    }
}

void marks_set(struct judge *j) {
    struct stuck *s = j->stuck;
    struct front front = {0};
    mark_none(s);
    for (int p = 0; p < s->n; p++)
        for (int i = 0; s->of[p].data && i < s->of[p].head->n[OPS]; i++)
            if (s->of[p].marks[i].open == 0 && !s->of[p].head->busy)
                push(&front, p, i);
    begin_ops(s, &front);
    for (bool news = true; news;) {
        news = false;
        for (int p = 0; p < s->n; p++) {
            news |= s->of[p].others && end_others(j, &front, p);
            if (!s->of[p].host && host_can(j, p)) {
                s->of[p].host = news = true;
                for (int i = 0; s->of[p].data && i < s->of[p].head->n[OPS]; i++)
                    if (s->of[p].marks[i].held && --s->of[p].marks[i].open == 0)
                        push(&front, p, i);
                // All who wait for it to make a call hear that it can.
                for (size_t k = 0; stuck_can_call(s, p) && k < s->of[p].nawaited; k++)
                    one_more_here(s, &front, s->meetings[s->of[p].awaited[k]]);
            }
            begin_ops(s, &front);
        }
    }
    free(front.at);
}
