/*
 * issue.c: operations and calls, put after what comes before them.
 *
 * A group of calls of NCCL "will behave as if the NCCL group operation was posted on
 * every stream" that its calls have (NCCL User Guide, "CUDA Stream Semantics"): for each
 * communicator. Those come one after the other, as the program first names them: "users
 * still need to guarantee the same issuing order […] no matter whether the operations are
 * issued to the same or different communicators" ("Group Operation Ordering Semantics").
 */
#include "history/issue.h"

#include "history/memory.h"
#include "history/functions.h"
#include "ranks/comms.h"
#include "say/words.h"

void latest_clear(struct latest *latest) {
    for (size_t i = 0; i < latest->nuses; i++)
        use_drop(latest->uses[i].use);
    latest->nuses = latest->ncalls = latest->captured = 0;
    latest->join = latest->in_group = false;
    latest->at = (struct judge_at){0};
}

struct latest *latest_begin(struct judge *j, struct judge_at at) {
    struct latest *latest = j->thread->latest;
    latest_clear(latest);
    latest->at = at;
    j->thread->asks_since = 0;
    return latest;
}

void latest_free(struct latest *latest) {
    latest_clear(latest);
    free(latest->uses);
    free(latest);
}

static void tell_use(struct latest *latest, struct use *use,
                     const struct judge_range *range) {
    if (!latest)
        return;
    ROOM(latest->uses, latest->nuses, &latest->uses_size);
    latest->uses[latest->nuses++] = (struct latest_use){use, *range};
    use->holders++;
}

void latest_undo(struct judge *j, struct latest *latest) {
    for (size_t i = latest->nuses; i-- > 0;)
        uses_undo(j, &latest->uses[i].range, latest->uses[i].use);
    for (; latest->ncalls > 0; latest->ncalls--)
        calls_taken_back(j);
    if (latest->join)
        calls_join_failed(j);
    latest_clear(latest);
}

static void add_use(struct judge *j, struct use *use, const struct judge_range *ranges,
                    int n, const struct clock *clock, struct latest *latest) {
    use->legacy = j->order->slots[use->slot].kind == JUDGE_LEGACY;
    use->thread = j->thread->number;
    if (functions_queued(j))
        clock_copy(&use->behind, clock);
    for (int i = 0; i < n; i++) {
        uses_add(j, &ranges[i], use, clock);
        tell_use(latest, use, &ranges[i]);
    }
}

void issue_op(struct judge *j, int slot, const struct judge_range *ranges, int n,
              struct use *use, struct latest *latest) {
    use->slot = slot;
    use->seq = order_next(j->order, slot);
    add_use(j, use, ranges, n, order_clock(j->order, slot), latest);
    if (use->awaits) {
        struct position here = {slot, use->seq, order_clock(j->order, slot), 0, false};
        struct pending_op *op = pending_add(&j->calls->pending, here, -use->awaits);
        op->fact.site = use->at.site;
        op->at = use->at;
    }
    use_drop(use);
}

struct together { // the slots and communicators of a group
    int *slots, *comms;
    uint64_t *seqs;       // per slot
    struct clock *clocks; // per communicator
    int nslots, ncomms;
    int few_slots[FEW], few_comms[FEW]; // most calls are alone
    uint64_t few_seqs[FEW];
};

static int index_in(int *list, int *n, int number) {
    int i = 0;
    while (i < *n && list[i] != number)
        i++;
    if (i == *n)
        list[(*n)++] = number;
    return i;
}

/* Whether a call ends only when another rank's has begun, since it gets data from there:
 * what comes after the one on its stream comes after what is before the other on its
 * own. */
static bool gets_from(struct judge *j, const struct judge_call *call,
                      const struct judge_call *other) {
    const struct comm_facts *to = calls_comm(j, call->comm),
                            *from = calls_comm(j, other->comm);
    if (call->comm == other->comm || call->count == 0 || !to || !from ||
        to->id != from->id)
        return false;
    bool one = call->kind == JUDGE_RECV
                   ? other->kind == JUDGE_SEND && other->root == to->rank
                   : call->kind == other->kind;
    return one && part_needs(call->kind, call->root, to->rank, from->rank);
}

/* Whether two of the group's communicators are ranks of one. */
static bool several_ranks(struct judge *j, const struct together *t) {
    for (int c = 1; c < t->ncomms; c++) {
        const struct comm_facts *one = calls_comm(j, t->comms[c]);
        for (int d = 0; d < c && one; d++) {
            const struct comm_facts *other = calls_comm(j, t->comms[d]);
            if (other && other->id == one->id)
                return true;
        }
    }
    return false;
}

/* Several ranks of one communicator, on devices of one process. */
static void meet(struct judge *j, const struct issued_call *calls, int n,
                 const struct together *t) {
    struct clock *before = must_alloc((size_t)t->ncomms * sizeof *before);
    int ncomms = t->ncomms;
    for (int c = 0; c < ncomms; c++)
        clock_copy(&before[c], &t->clocks[c]);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && calls[i].slot >= 0; k++)
            if (calls[k].slot >= 0 && gets_from(j, &calls[i].call, &calls[k].call))
                clock_join(order_clock(j->order, calls[i].slot),
                           &before[index_in(t->comms, &ncomms, calls[k].call.comm)]);
    for (int c = 0; c < ncomms; c++)
        clock_free(&before[c]);
    free(before);
}

/* Puts the group after what its streams hold: all streams of one communicator join
 * before, and all get the join after. */
static void put_behind(struct judge *j, const struct issued_call *calls, int n,
                       struct together *t) {
    for (int i = 0; i < n; i++)
        if (calls[i].slot >= 0) {
            index_in(t->slots, &t->nslots, calls[i].slot);
            clock_join(&t->clocks[index_in(t->comms, &t->ncomms, calls[i].call.comm)],
                       order_clock(j->order, calls[i].slot));
        }
    if (several_ranks(j, t))
        meet(j, calls, n, t);
    for (int s = 0; s < t->nslots; s++)
        t->seqs[s] = order_next(j->order, t->slots[s]);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < n; i++) {
            if (calls[i].slot < 0)
                continue;
            struct clock *clock =
                &t->clocks[index_in(t->comms, &t->ncomms, calls[i].call.comm)];
            if (again)
                clock_join(order_clock(j->order, calls[i].slot), clock);
            else
                clock_reach(clock, calls[i].slot,
                            t->seqs[index_in(t->slots, &t->nslots, calls[i].slot)]);
        }
}

static void check_together(struct judge *j, const struct issued_call *calls, int n) {
    struct judge_range *ranges = must_alloc((size_t)n * CALL_RANGES * sizeof *ranges);
    const struct judge_call **of_call = must_alloc((size_t)n * sizeof *of_call);
    int *of = must_alloc((size_t)n * CALL_RANGES * sizeof *of), nranges = 0;
    for (int i = 0; i < n; i++) {
        of_call[i] = &calls[i].call;
        int more = uses_of_call(j, &calls[i].call, ranges + nranges);
        // In place, it is the writing that matters.
        if (more > 1 && ranges[nranges].start == ranges[nranges + 1].start &&
            ranges[nranges].bytes == ranges[nranges + 1].bytes)
            ranges[nranges] = ranges[nranges + --more];
        while (more-- > 0)
            of[nranges++] = i;
    }
    uses_group(j, ranges, of, nranges, of_call);
    free(ranges);
    free(of);
    free(of_call);
}

/* Those of one communicator, or of several that share no stream. */
static void issue_together(struct judge *j, const struct issued_call *calls, int n,
                           uint64_t group, struct latest *latest) {
    struct together t = {0};
    bool many = n > FEW;
    t.slots = many ? must_alloc((size_t)n * sizeof(int)) : t.few_slots;
    t.comms = many ? must_alloc((size_t)n * sizeof(int)) : t.few_comms;
    t.seqs = many ? must_alloc((size_t)n * sizeof(uint64_t)) : t.few_seqs;
    t.clocks = many ? must_alloc((size_t)n * sizeof(struct clock)) : j->order->group;
    put_behind(j, calls, n, &t);
    for (int i = 0; i < n; i++) {
        const struct judge_call *call = &calls[i].call;
        int slot = calls[i].slot;
        struct position position = {
            .slot = slot, .group = group, .captured = calls[i].captured};
        struct use *use = use_new(call->at);
        struct judge_range ranges[CALL_RANGES];
        if (slot >= 0) {
            position.seq = t.seqs[index_in(t.slots, &t.nslots, slot)];
            position.clock = order_clock(j->order, slot);
        }
        use->call = *call;
        use->is_call = true;
        use->slot = slot;
        use->seq = position.seq;
        use->index = calls_issued(j, call, position);
        int nranges = slot >= 0 ? uses_of_call(j, call, ranges) : 0;
        if (slot >= 0)
            add_use(j, use, ranges, nranges,
                    &t.clocks[index_in(t.comms, &t.ncomms, call->comm)], latest);
        use_drop(use);
        windows_use(j, slot, ranges, nranges, call->at);
        windows_call(j, call, slot);
        if (latest)
            latest->ncalls++;
    }
    for (int c = 0; c < t.ncomms && !many; c++)
        clock_clear(&t.clocks[c]);
    if (!many)
        return;
    for (int c = 0; c < t.ncomms; c++)
        clock_free(&t.clocks[c]);
    free(t.slots);
    free(t.comms);
    free(t.seqs);
    free(t.clocks);
}

/* Whether two communicators have a call on one stream; not if they are ranks of one. */
static bool in_turn(struct judge *j, const struct issued_call *calls, int n) {
    bool shared = false;
    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++) {
            int one = calls[i].call.comm, other = calls[k].call.comm;
            if (one == other)
                continue;
            const struct comm_facts *a = calls_comm(j, one), *b = calls_comm(j, other);
            if (a && b && a->id == b->id)
                return false;
            shared |= calls[i].slot >= 0 && calls[i].slot == calls[k].slot;
        }
    return shared;
}

void issue_calls(struct judge *j, const struct issued_call *calls, int n, bool grouped,
                 struct latest *latest) {
    uint64_t group = grouped ? ++j->groups : 0;
    if (n > 1)
        check_together(j, calls, n);
    if (!in_turn(j, calls, n)) {
        issue_together(j, calls, n, group, latest);
        return;
    }
    struct issued_call *rest = must_alloc((size_t)n * 2 * sizeof *rest), *part = rest + n;
    memcpy(rest, calls, (size_t)n * sizeof *rest);
    while (n > 0) {
        int first = rest[0].call.comm, nrest = 0, npart = 0;
        for (int i = 0; i < n; i++)
            if (rest[i].call.comm == first)
                part[npart++] = rest[i];
            else
                rest[nrest++] = rest[i];
        issue_together(j, part, npart, group, latest);
        n = nrest;
    }
    free(rest);
}
