/*
 * meetings.c: on rank 0: where the calls of several ranks meet, and who has come.
 */
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
    m->of = must_alloc((size_t)m->n * sizeof *m->of);
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

const struct state_comm *stuck_told_of(const struct stuck *s, int p, uint64_t id,
                                       int rank) {
    const struct process *process = p < 0 || p >= s->n ? NULL : &s->of[p];
    for (int c = 0; process && process->data && c < process->ncomms; c++)
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
    const struct state_comm *told = stuck_told_of(s, member->world, m->comm, rank);
    if (told && m->from < 0)
        return told->collectives < m->seq ? BY_HOST : begun;
    for (int c = 0; c < process->npairs && m->from >= 0; c++) {
        const struct pair_count *own = &process->pairs[c];
        if (own->comm == m->comm && own->rank == rank && own->peer == peer &&
            own->what == (i == 0))
            return own->n < m->seq ? BY_HOST : begun;
    }
    return BY_HOST;
}

/* Nothing of what a call is to launch has begun while the call waits to connect ranks:
 * something is the first between them. */
static void hold_launches(struct stuck *s, int p, const struct wait *wait) {
    bool connects = false;
    for (int i = 0; i < wait->n; i++)
        connects |= !wait->launches[i].join && wait->launches[i].fact.seq == 1;
    for (int i = 0; i < wait->n; i++) {
        const struct fact *fact = &wait->launches[i].fact;
        if (wait->launches[i].join)
            continue;
        const struct meeting *m = stuck_meeting(s, fact);
        int member = member_of(fact);
        if (connects && !wait->told->poll && member >= 0 && member < m->n &&
            m->of[member].status == WITH_OP && m->of[member].who == p)
            m->of[member].op->held = true;
    }
}

static void find_of_process(struct judge *j, int p) {
    struct stuck *s = j->stuck;
    struct process *process = &s->of[p];
    process->nawaited = 0;
    for (int i = 0; i < process->nops; i++) {
        struct op *op = &process->ops[i];
        const struct fact *fact = &op->told->fact;
        process->others |= op->told->signals || members_given_up(j, fact->comm);
        op->meeting = NULL;
        if (op->told->signals)
            continue;
        struct meeting *m = stuck_meeting(s, fact);
        int member = member_of(fact);
        if (process->head->busy || member < 0 || member >= m->n)
            continue; // busy: and may end them
        op->meeting = m;
        m->of[member] = (struct met){WITH_OP, p, op};
    }
    for (int w = 0; w < process->nwaits; w++)
        if (process->waits[w].kind == WAIT_LAUNCH)
            hold_launches(s, p, &process->waits[w]);
}

void meetings_find(struct judge *j) {
    struct stuck *s = j->stuck;
    for (int p = 0; p < s->n; p++)
        find_of_process(j, p);
    for (size_t k = 0; k < s->nmeetings; k++) {
        struct meeting *m = s->meetings[k];
        for (int i = 0; i < m->n; i++) {
            struct met *met = &m->of[i];
            if (met->status == WITH_OP)
                continue;
            met->status = status_of(j, m, i, &met->who);
            struct process *process = met->who < 0 ? NULL : &s->of[met->who];
            m->lost += met->status == NEVER;
            if (met->status != BY_HOST)
                continue;
            m->lost += process_finished(process) && process->head->computing == 0;
            ROOM(process->awaited, process->nawaited, &process->awaited_size);
            process->awaited[process->nawaited++] = m;
        }
    }
}

void meetings_forget(struct stuck *s) {
    for (size_t k = 0; k < s->nmeetings; k++) {
        free(s->meetings[k]->of);
        free(s->meetings[k]);
    }
    s->nmeetings = 0;
    map_free(&s->by_key);
}
