/*
 * stuck.c: on rank 0: when processes wait, can what they wait for still come?
 *
 * Whatever can go on is marked (can_go_on.c). What is never marked is stuck for good,
 * whatever the others still do. Before that is said (verdict.c), all whom it rests on
 * have described themselves twice more, unchanged.
 *
 * Model: the wait-for graphs of MUST.
 */
#include "stuck/stuck.h"

static struct stuck *stuck_of(struct judge *j) {
    struct stuck *s = j->stuck;
    if (s->n < j->nranks) {
        s->of = must_grow(s->of, (size_t)j->nranks * sizeof *s->of);
        memset(s->of + s->n, 0, (size_t)(j->nranks - s->n) * sizeof *s->of);
        s->n = j->nranks;
    }
    return s;
}

/* A thread in MPI may have all that it needs, and not have noticed yet: on a machine
 * that is busy a thread may have no processor for a second, and the helper beside it has.
 * MPI looks for what comes, without a pause or with short ones: how long it has looked is
 * what the thread has worked since, and a thousand looks take it a millisecond. */
static bool may_have_got_it(const struct process *process) {
    static const double ENOUGH = 0.003; // seconds
    enum { SLEEPS = 100 }; // descriptions: an MPI that does not look, but sleeps
    return process_in_mpi(process) && process->head->worked >= 0 &&
           process->head->worked < process->suspect_worked + ENOUGH &&
           process->heard < process->suspect_heard + SLEEPS;
}

/* Between two machines a message may be under way for seconds: a connection that is lost
 * on a busy network is asked for again after one, and after three. Until shortly before
 * the timeout itself decides, which knows less. */
static bool may_be_under_way(struct judge *j) {
    static const double PART = 0.8; // of the timeout
    const struct stuck *s = j->stuck;
    const char *host = NULL;
    bool apart = false;
    for (int p = 0; p < s->n; p++) {
        if (s->of[p].data && host)
            apart |= strcmp(s->of[p].head->host, host) != 0;
        else if (s->of[p].data)
            host = s->of[p].head->host;
    }
    return apart && now(j) - s->suspected < PART * j->options.timeout;
}

/* From everybody it rests on, two more descriptions, unchanged; more where somebody is in
 * MPI. */
static bool confirmed(struct judge *j, bool still) {
    struct stuck *s = j->stuck;
    bool sure = s->suspicious, under_way = may_be_under_way(j);
    unsigned more = 2;
    for (int p = 0; p < s->n; p++)
        if (s->of[p].data && !s->of[p].host && process_in_mpi(&s->of[p]))
            more = 8;
    for (int p = 0; p < s->n && s->suspicious; p++) {
        const struct process *process = &s->of[p];
        if (!process->data || (!still && !process->wait && !process_finished(process)))
            continue;
        if (process->head->activity != process->suspect_activity)
            s->suspicious = false;
        else if (process->heard < process->suspect_heard + more &&
                 !process_finished(process))
            sure = false;
        else if (may_have_got_it(process) || (under_way && process_in_mpi(process)))
            sure = false;
    }
    if (s->suspicious)
        return sure;
    for (int p = 0; p < s->n; p++) {
        s->of[p].suspect_heard = s->of[p].heard;
        s->of[p].suspect_activity = s->of[p].data ? s->of[p].head->activity : 0;
        s->of[p].suspect_worked = s->of[p].data ? s->of[p].head->worked : 0;
    }
    s->suspicious = true;
    s->suspected = now(j);
    return false;
}

/* Calls that lack ranks for good, of processes that go on. They may look at other things
 * for a while, and then abort; and of a wait that only asks, the verdict says more. */
static void judge_calls(struct judge *j) {
    static const struct state_wait nothing;
    static const struct wait no_wait = {.told = &nothing, .kind = WAIT_ORDER};
    static const double LATER = 2; // seconds
    struct stuck *s = j->stuck;
    const struct process *found = NULL;
    for (int p = 0; p < s->n; p++)
        for (int i = s->of[p].nops; i-- > 0;) {
            const struct fact *call = &s->of[p].ops[i].told->fact;
            struct meeting *m = stuck_meeting(s, call);
            if (!m->lost || members_given_up(j, m->comm) || !stuck_can_call(s, p))
                continue;
            verdict_wait(j, p, true);
            if (!s->of[p].cause.call) {
                s->of[p].wait = &no_wait;
                s->of[p].cause = (struct cause){.call = call, .meeting = m};
            }
            found = found && !s->of[p].fresh ? found : &s->of[p];
        }
    if (!found || s->lacking == 0)
        s->lacking = found ? now(j) : 0;
    else if (found->fresh && now(j) - s->lacking >= j->options.timeout + LATER)
        verdict(j, (int)(found - s->of));
}

static void judge_all(struct judge *j) {
    struct stuck *s = j->stuck;
    int first = -1, rank = 0, stay = 0, ended = 0;
    for (int p = 0; p < s->n; p++) {
        const struct process *process = &s->of[p];
        stay += process->data && (!process->host || process_finished(process));
        ended += process_finished(process);
        // A call says most, then a join.
        int says = !process->wait        ? 0
                   : process->cause.call ? 3
                   : process->cause.join ? 2
                                         : 1;
        if (says > rank) {
            first = p;
            rank = says;
        }
    }
    bool still = s->silent && stay == s->n && ended < s->n;
    if (rank == 1 && still)
        first = -1; // nobody knows whose fault it is
    if (first < 0 && !still)
        s->suspicious = false;
    else if (confirmed(j, first < 0) && now(j) >= j->members->hold)
        verdict(j, first);
    judge_calls(j);
}

static void mark(struct judge *j) {
    meetings_find(j);
    can_go_on_mark(j);
    for (int p = 0; p < j->stuck->n; p++)
        verdict_wait(j, p, false);
}

void stuck_receive(struct judge *j, int from, const void *data, size_t bytes) {
    struct stuck *s = stuck_of(j);
    struct process new;
    if (from < 0 || from >= s->n || !process_read(&new, from, data, bytes))
        return;
    struct process *process = &s->of[from], old = *process;
    bool same = old.data && old.head->activity ==
                                new.head->activity &&old.head->computing ==
                                new.head->computing &&old.nwaits == new.nwaits;
    if (!same && !new.head->busy)
        s->changed = now(j);
    new.heard = old.heard + 1;
    new.suspect_heard = old.suspect_heard;
    new.suspect_activity = old.suspect_activity;
    new.suspect_worked = old.suspect_worked;
    new.since = same ? old.since : now(j);
    new.fresh = true;
    process_free(&old);
    *process = new;
    for (int w = 0; w < process->nwaits; w++) {
        const struct state_wait *wait = process->waits[w].told;
        if (wait->kind != WAIT_ENDS_JOB || j->over)
            continue;
        mark(j);
        verdict_ended(j, from, (struct judge_at){wait->call, wait->site});
        meetings_forget(s);
        j->over = true;
    }
}

void stuck_look(struct judge *j) {
    if (j->rank != 0 || j->over)
        return;
    struct stuck *s = stuck_of(j);
    bool fresh = false;
    for (int p = 0; p < s->n; p++)
        fresh |= s->of[p].fresh;
    if (!fresh)
        return;
    double changed = j->members->changed > s->changed ? j->members->changed : s->changed;
    s->quiet = now(j) - changed;
    s->silent = s->quiet >= j->options.timeout;
    for (int p = 0; p < s->n; p++)
        s->silent &= s->of[p].data && s->of[p].nwaits > 0 &&
                     (s->of[p].head->computing == 0 || process_finished(&s->of[p]));
    mark(j);
    judge_all(j);
    meetings_forget(s);
    for (int p = 0; p < s->n; p++)
        s->of[p].fresh = false;
}

void stuck_free(struct stuck *s) {
    for (int p = 0; p < s->n; p++)
        process_free(&s->of[p]);
    meetings_forget(s);
    free(s->meetings);
    free(s->of);
    free(s);
}
