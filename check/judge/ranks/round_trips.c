/*
 * round_trips.c: an order that another rank may bring about.
 *
 * What a rank receives was sent: so an operation that comes before a send is over when
 * the peer has received, and when the peer's answer is here, though no event and no wait
 * on this rank says so. Where that is possible, nothing is said of a race.
 *
 * NCCL User Guide, "Point-to-point communication" and "CUDA Stream Semantics".
 */
#include "ranks/round_trips.h"

#include "say/words.h"

/* Calls that are remembered one by one, and slots: of one with more, and of those before,
 * it is known only what they came after. */
enum { KEPT = 512, WIDE = 1024 };

struct passed { // a call of this process that has other ranks
    struct fact fact;
    uint64_t group, at;
    int slot;
    bool gives, gets; // data to others, from others
    uint64_t issued;
    struct clock clock;
};

static size_t oldest(const struct round_trips *d) {
    return d->n > KEPT ? d->n - KEPT : 0;
}

void round_trip_call(struct judge *j, const struct fact *fact, struct position at) {
    struct round_trips *d = j->round_trips;
    bool pair = pairs(fact->kind), root = fact->root == fact->rank;
    int other = root ? fact->rank + 1 : fact->root;
    bool gives = pair ? fact->kind == JUDGE_SEND
                      : part_needs(fact->kind, fact->root, other, fact->rank);
    if (fact->nranks < 2 || fact->count == 0 || (pair && root))
        return;
    if (at.clock->n > WIDE) {
        if (gives)
            clock_join(&d->forgotten, at.clock);
        return;
    }
    if (d->n < KEPT)
        ROOM(d->calls, d->n, &d->size);
    struct passed *call = &d->calls[d->n++ % KEPT];
    struct clock clock = call->clock; // its memory is used again
    if (call->gives)
        clock_join(&d->forgotten, &clock);
    clock_copy(&clock, at.clock);
    bool gets = part_needs(fact->kind, fact->root, fact->rank, other);
    *call = (struct passed){*fact, at.group, at.seq,      at.slot,
                            gives, gets,     ++d->moment, clock};
}

void round_trip_taken_back(struct judge *j, const struct fact *fact) {
    struct round_trips *d = j->round_trips;
    for (size_t i = oldest(d); i < d->n; i++) {
        struct passed *call = &d->calls[i % KEPT];
        if (call->fact.comm == fact->comm && call->fact.rank == fact->rank &&
            call->fact.index == fact->index)
            call->gives = call->gets = false;
    }
}

void round_trip_heard(struct judge *j) {
    struct round_trips *d = j->round_trips;
    d->heard = ++d->moment;
}

void judge_shares_event(struct judge *j) {
    j->shares_events = true;
    j->epoch = 0;
}

/* Whether a call begins only when the use has ended. */
static bool comes_after(const struct passed *call, int slot, uint64_t seq,
                        uint64_t group) {
    return call->gives && clock_covers(&call->clock, slot, seq) &&
           !(call->slot == slot && call->at == seq) && !(group && call->group == group);
}

/* Whether what comes after `clock` may have to wait for the answer to `call`. */
static bool answered(const struct round_trips *d, const struct passed *call,
                     const struct clock *clock) {
    if (d->heard > call->issued)
        return true;
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *other = &d->calls[i % KEPT];
        bool earlier = other->fact.comm == call->fact.comm &&
                       other->fact.kind == call->fact.kind &&
                       other->fact.seq <= call->fact.seq;
        if (other->gets && !earlier && clock_covers(clock, other->slot, other->at) &&
            !clock_covers(&call->clock, other->slot, other->at))
            return true;
    }
    return false;
}

bool round_trip_possible(struct judge *j, int slot, uint64_t seq,
                         const struct clock *clock) {
    const struct round_trips *d = j->round_trips;
    uint64_t group = 0;
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = &d->calls[i % KEPT];
        if (call->slot == slot && call->at == seq)
            group = call->group;
    }
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = &d->calls[i % KEPT];
        if (comes_after(call, slot, seq, group) && answered(d, call, clock))
            return true;
    }
    return j->shares_events || clock_covers(&d->forgotten, slot, seq);
}

void round_trips_free(struct round_trips *d) {
    for (size_t i = 0; i < d->n && i < KEPT; i++)
        clock_free(&d->calls[i].clock);
    clock_free(&d->forgotten);
    free(d->calls);
    free(d);
}
