/*
 * races.c: uses of the same bytes that nothing puts in order.
 *
 * NCCL User Guide, "Group Calls"; CUDA Runtime API, "Stream synchronization behavior".
 */
#include "history/allocations.h"
#include "ranks/round_trips.h"
#include "history/functions.h"

/* Why the last wait of one stream does not put it after what is queued on another. */
static void set_wait_in_vain(struct judge *j, struct finding *f, const struct use *use,
                             const struct use *other) {
    struct waited waited = j->order->slots[use->slot].waited;
    if (!waited.at.call)
        return;
    const char *wait = place(j, waited.at.site), *last = place(j, waited.last.at.site);
    if (!waited.last.at.call)
        set(f, "wait", "%s at %s waits for nothing: its event was not yet recorded",
            waited.at.call, wait);
    else if (waited.last.slot == other->slot && waited.last.seq < other->seq)
        set(f, "wait", "%s at %s waits for %s at %s, and that was before the operation",
            waited.at.call, wait, waited.last.at.call, last);
    else if (waited.last.slot == use->slot)
        set(f, "wait", "%s at %s waits for %s at %s, on its own stream", waited.at.call,
            wait, waited.last.at.call, last);
}

static void report_race(struct judge *j, const struct allocation *a,
                        const struct use *use, const struct clock *clock, bool write,
                        const struct use *other, bool other_writes) {
    bool early = !other->makes && !use->legacy && other->legacy && other->moves;
    struct finding f = finding(other->makes  ? FINDING_race_not_made_yet
                               : early       ? FINDING_race_copy_returns_early
                               : use->legacy ? FINDING_race_default_stream
                                             : FINDING_race_streams,
                               use->at.site, other->at.site);
    if (was_said(j, &f) || round_trip_possible(j, other->slot, other->seq, clock))
        return;
    set_use(j, &f, "use", use);
    set(&f, "does", "%s", does(write));
    set_use(j, &f, "other", other);
    set(&f, "other_does", "%s", does(other_writes));
    set_allocation(j, &f, a);
    set_failures(j, &f);
    if (early) {
        set(&f, "call", "%s", other->at.call);
    } else if (!use->legacy) {
        set_wait_in_vain(j, &f, use, other);
    } else if (strncmp(use->at.call, "cublas", 6) == 0) {
        f.hint = HINT_blas_stream;
    }
    say(j, &f);
}

/* Ranks of one communicator, each with a thread of its own. What one of them queued
 * before a call of NCCL, another rank's operation may come after, though it was queued
 * earlier. */
static bool may_meet(struct judge *j, const struct use *use, const struct use *other) {
    int device = j->order->slots[use->slot].device,
        its = j->order->slots[other->slot].device;
    const struct comm_facts *a, *b;
    if (use->thread == other->thread || device == its)
        return false;
    for (int c = 0; (a = calls_comm(j, c)); c++)
        for (int d = 0; a->device == device && (b = calls_comm(j, d)); d++)
            if (b->device == its && b->id == a->id && !a->gone && !b->gone)
                return true;
    return false;
}

static bool is_known(const struct use *use, void *self) {
    const struct judge *j = self;
    return clock_covers(&j->known, use->slot, use->seq);
}

static void forget_some(struct judge *j) {
    struct uses *uses = j->uses;
    if (history_parts() <= uses->forget_at)
        return;
    for (size_t i = 0; i < uses->n; i++)
        history_forget(&uses->table[i]->history, is_known, j);
    uses->forget_at = 2 * history_parts() + 4096;
}

static bool is_of_comm(const struct use *use, void *self) {
    return use->is_call && use->call.comm == *(int *)self;
}

void uses_comm_ends(struct judge *j, int comm, enum judge_end how) {
    if (how != JUDGE_ABORTED && how != JUDGE_REVOKED)
        return;
    // Its operations are given up.
    for (size_t i = 0; i < j->uses->n; i++)
        history_forget(&j->uses->table[i]->history, is_of_comm, &comm);
}

/* The part of a range that lies in its allocation; NULL: in none. */
static struct allocation *part_of(struct judge *j, const struct judge_range *range,
                                  uint64_t *from, uint64_t *to) {
    struct allocation *a =
        range->bytes ? allocation_find(j->uses, address_of(range->start)) : NULL;
    if (!a)
        return NULL;
    *from = address_of(range->start);
    *to = *from + range->bytes < a->end ? *from + range->bytes : a->end;
    return a;
}

static bool host_may_touch(const struct allocation *a) {
    return a->kind == JUDGE_PINNED || a->kind == JUDGE_HOST_REGISTERED ||
           a->kind == JUDGE_MANAGED;
}

void uses_add(struct judge *j, const struct judge_range *range, struct use *use,
              const struct clock *clock) {
    uint64_t from, to;
    bool its_write = false;
    struct allocation *a = part_of(j, range, &from, &to);
    if (!a) { // the host's own, which a copy uses before it returns
        from = address_of(range->start);
        lent_check(j, NULL, from, from + range->bytes, range->write, use, clock);
        return;
    }
    const struct use *other =
        history_add(&a->history, from, to, range->write, use, clock, &its_write);
    if (other && !may_meet(j, use, other))
        report_race(j, a, use, clock, range->write, other, its_write);
    lent_check(j, a, from, to, range->write, use, clock);
    if (range->write && !fresh_left_by(a, use->at.site))
        fresh_forget(a, from, to);
    if (range->write && !use->makes) {
        const bool written = a->written;
        fresh_written(j->uses, a, use->source);
        use->first |= a->written != written;
    }
    if (host_may_touch(a) && j->outside.host_memory && !functions_before(j, use) &&
        !lent_part(j->uses, from, to, range->write))
        j->outside.host_memory(j->outside.self, (const void *)(uintptr_t)a->start, range);
    forget_some(j);
}

void uses_undo(struct judge *j, const struct judge_range *range, struct use *use) {
    uint64_t from, to;
    struct allocation *a = part_of(j, range, &from, &to);
    if (!a)
        return;
    history_undo(&a->history, from, to, use);
    if (range->write && fresh_left_by(a, use->at.site))
        fresh_forget(a, a->start, a->end);
    if (use->first)
        a->written &= !range->write;
    if (!range->write && j->uses->copies_nothing.site == use->at.site)
        j->uses->copies_nothing = (struct judge_at){0};
}

static void report_group(struct judge *j, const struct judge_range *a,
                         const struct judge_call *one, const struct judge_range *b,
                         const struct judge_call *other) {
    struct finding f = finding(FINDING_race_group, one->at.site, other->at.site);
    const struct allocation *memory = allocation_find(j->uses, address_of(a->start));
    set_words_at(j, &f, "use", call_words(one), one->at.site);
    set(&f, "does", "%s", does(a->write));
    set_words_at(j, &f, "other", call_words(other), other->at.site);
    set(&f, "other_does", "%s", does(b->write));
    if (memory)
        set_allocation(j, &f, memory);
    say(j, &f);
}

/* A send to oneself and a receive from oneself of the same bytes: nothing to do. */
static bool to_itself(struct judge *j, const struct judge_call *a,
                      const struct judge_call *b) {
    const struct comm_facts *comm = calls_comm(j, a->comm);
    return comm && a->comm == b->comm && a->root == comm->rank && b->root == comm->rank &&
           ((a->kind == JUDGE_SEND && b->kind == JUDGE_RECV &&
             a->sendbuff == b->recvbuff) ||
            (a->kind == JUDGE_RECV && b->kind == JUDGE_SEND &&
             a->recvbuff == b->sendbuff));
}

/* What is sent is what is overwritten, byte by byte: nccl-tests times it so, and never
 * looks at the result. A program that has kernels of its own may know what it does. */
static bool in_place(const struct judge *j, const struct judge_range *a,
                     const struct judge_call *one, const struct judge_range *b,
                     const struct judge_call *other) {
    return j->uses->kernels && a->start == b->start && a->bytes == b->bytes &&
           ((one->kind == JUDGE_SEND && other->kind == JUDGE_RECV) ||
            (one->kind == JUDGE_RECV && other->kind == JUDGE_SEND));
}

/* "Calls within a group targeting the same peer … are executed in order" (NCCL User
 * Guide, "Point-to-point communication"). */
static bool in_turn(const struct judge_call *a, const struct judge_call *b) {
    return pairs(a->kind) && a->kind == b->kind && a->root == b->root &&
           a->comm == b->comm;
}

struct ordered {
    const struct judge_range *range;
    int of, at;
};

static int by_start(const void *a, const void *b) {
    const struct ordered *one = a, *other = b;
    uint64_t x = address_of(one->range->start), y = address_of(other->range->start);
    return x != y ? (x < y ? -1 : 1) : one->at - other->at;
}

void uses_group(struct judge *j, const struct judge_range *ranges, const int *of, int n,
                const struct judge_call *const *calls) {
    struct ordered *sorted = must_alloc((size_t)n * sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = (struct ordered){&ranges[i], of[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_start);
    // Only where a range begins before one has ended that it may not meet, all are looked
    // at.
    uint64_t read_until = 0, written_until = 0;
    for (int i = 0; i < n; i++) {
        const struct judge_range *b = sorted[i].range;
        uint64_t from = address_of(b->start), to = from + b->bytes;
        if (from < written_until || (b->write && from < read_until))
            for (int k = i - 1; k >= 0; k--) {
                const struct judge_range *a = sorted[k].range;
                const struct judge_call *one = calls[sorted[k].of],
                                        *other = calls[sorted[i].of];
                if (one == other || !(a->write || b->write) ||
                    address_of(a->start) + a->bytes <= from ||
                    to <= address_of(a->start) || to_itself(j, one, other) ||
                    in_turn(one, other) || in_place(j, a, one, b, other) ||
                    !allocation_find(j->uses, from))
                    continue;
                bool as_made = sorted[k].of < sorted[i].of;
                report_group(j, as_made ? a : b, as_made ? one : other, as_made ? b : a,
                             as_made ? other : one);
                break;
            }
        uint64_t *until = b->write ? &written_until : &read_until;
        *until = to > *until ? to : *until;
    }
    free(sorted);
}
