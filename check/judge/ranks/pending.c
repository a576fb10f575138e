/*
 * pending.c: the operations that hold a call of NCCL, or a function of the program, and
 * that the host does not know to be done; and what each of them comes after.
 */
#include "ranks/pending.h"

static struct stock ops;

/* What is left of a stream, oldest first. */
struct pending_slot {
    struct pending_op **at;
    size_t first, end, size;
};

static struct pending_slot *slot_of(struct pending *u, int slot) {
    ROOM(u->slots, (size_t)slot, &u->nslots);
    return &u->slots[slot];
}

void pending_comes_after(struct pending_op *op, uint64_t number) {
    if (op->nbefore == FEW_BEFORE && op->before == op->few) {
        op->before = NULL;
        ROOM(op->before, FEW_BEFORE, &op->before_size);
        memcpy(op->before, op->few, sizeof op->few);
    } else if (op->nbefore >= FEW_BEFORE) {
        ROOM(op->before, op->nbefore, &op->before_size);
    }
    op->before[op->nbefore++] = number;
}

/* How many of a slot's entries, from its first one on, the clock covers. */
static size_t covered(const struct pending_slot *slot, int number,
                      const struct clock *clock) {
    size_t low = slot->first, high = slot->end;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (clock_covers(clock, number, slot->at[middle]->seq))
            low = middle + 1;
        else
            high = middle;
    }
    return low - slot->first;
}

size_t pending_covered(const struct pending *u, const struct clock *clock,
                       const struct pending_op ***list, size_t *size) {
    size_t n = 0;
    for (size_t i = 0; i < u->nactive; i++) {
        const struct pending_slot *slot = &u->slots[u->active[i]];
        size_t entries = covered(slot, u->active[i], clock);
        if (entries == 0)
            continue;
        // The calls of a group have the same place in their stream.
        size_t at = slot->first + entries - 1;
        for (uint64_t seq = slot->at[at]->seq;; at--) {
            ROOM(*list, n, size);
            (*list)[n++] = slot->at[at];
            if (at == slot->first || slot->at[at - 1]->seq != seq)
                break;
        }
    }
    return n;
}

/* Calls of a group happen together, but for communicators that share a stream. */
static bool together(const struct pending_op *op, const struct pending_op *other) {
    return op->group && other->group == op->group &&
           (other->comm == op->comm ||
            (other->slot == op->slot && other->seq == op->seq));
}

/* All that a new operation comes after, by its clock. */
static void order(struct pending *u, struct pending_op *op, const struct clock *clock) {
    for (size_t i = 0; i < u->nactive; i++) {
        const struct pending_slot *slot = &u->slots[u->active[i]];
        size_t n = covered(slot, u->active[i], clock);
        while (n > 0 && together(op, slot->at[slot->first + n - 1]))
            n--;
        if (n == 0)
            continue;
        uint64_t seq = slot->at[slot->first + n - 1]->seq;
        for (; n > 0 && slot->at[slot->first + n - 1]->seq == seq; n--)
            pending_comes_after(op, slot->at[slot->first + n - 1]->number);
    }
}

/* Another call of the same group, on the same communicator, at the same place: it comes
 * after the same. */
static uint64_t like(const struct pending *u, struct position at, int comm) {
    if (!at.group || (size_t)at.slot >= u->nslots)
        return 0;
    const struct pending_slot *slot = &u->slots[at.slot];
    const struct pending_op *last =
        slot->first < slot->end ? slot->at[slot->end - 1] : NULL;
    if (!last || last->seq != at.seq || last->group != at.group || last->comm != comm)
        return 0;
    return last->like ? last->like : last->number;
}

struct pending_op *pending_add(struct pending *u, struct position at, int comm) {
    struct pending_op *op = stock_take(&ops, sizeof *op);
    op->before = op->few;
    op->number = ++u->next;
    op->slot = at.slot;
    op->seq = at.seq;
    op->group = at.group;
    op->comm = comm;
    op->like = like(u, at, comm);
    if (at.clock && !op->like)
        order(u, op, at.clock);
    ROOM(u->at, u->n, &u->size);
    u->at[u->n++] = op;
    struct pending_slot *slot = slot_of(u, at.slot);
    if (slot->first == slot->end) {
        slot->first = slot->end = 0;
        ROOM(u->active, u->nactive, &u->active_size);
        u->active[u->nactive++] = at.slot;
    } else if (slot->first > slot->end / 2 && slot->end >= slot->size) {
        size_t n = slot->end - slot->first;
        memmove(slot->at, slot->at + slot->first, n * sizeof *slot->at);
        slot->first = 0;
        slot->end = n;
    }
    ROOM(slot->at, slot->end, &slot->size);
    slot->at[slot->end++] = op;
    return op;
}

struct pending_op *pending_find(const struct pending *u, uint64_t number) {
    size_t low = 0, high = u->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (u->at[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->n && u->at[low]->number == number && !u->at[low]->seen ? u->at[low]
                                                                           : NULL;
}

void pending_others(const struct pending *u, int comm, struct clock *clock) {
    for (size_t i = 0; i < u->n; i++) {
        const struct pending_op *op = u->at[i];
        for (size_t b = 0; op->comm == comm && !op->seen && b < op->nbefore; b++) {
            const struct pending_op *before = pending_find(u, op->before[b]);
            if (before && before->comm >= 0 && before->comm != comm)
                clock_reach(clock, before->slot, before->seq);
        }
    }
}

static void release(struct pending_op *op) {
    if (op->before != op->few)
        free(op->before);
    stock_give(&ops, op);
}

/* After some were seen. */
static void tidy(struct pending *u) {
    size_t n = 0;
    for (size_t i = 0; i < u->nactive; i++)
        if (u->slots[u->active[i]].first < u->slots[u->active[i]].end)
            u->active[n++] = u->active[i];
    u->nactive = n;
    if (2 * u->nseen <= u->n)
        return;
    n = 0;
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i]->seen)
            release(u->at[i]);
        else
            u->at[n++] = u->at[i];
    u->n = n;
    u->nseen = 0;
}

void pending_forget(struct pending *u, int comm, const struct pending_op *only) {
    for (size_t i = 0; i < u->nactive; i++) {
        struct pending_slot *slot = &u->slots[u->active[i]];
        size_t n = slot->first;
        for (size_t k = slot->first; k < slot->end; k++) {
            struct pending_op *op = slot->at[k];
            op->seen = only ? op == only : op->comm == comm;
            u->nseen += op->seen;
            if (!op->seen)
                slot->at[n++] = op;
        }
        slot->end = n;
    }
    tidy(u);
}

void pending_cover(struct pending *u, const struct clock *known) {
    for (size_t i = 0; i < u->nactive; i++) {
        struct pending_slot *slot = &u->slots[u->active[i]];
        while (slot->first < slot->end &&
               clock_covers(known, u->active[i], slot->at[slot->first]->seq)) {
            slot->at[slot->first++]->seen = true;
            u->nseen++;
        }
    }
    tidy(u);
}

void pending_free(struct pending *u) {
    for (size_t i = 0; i < u->n; i++)
        release(u->at[i]);
    for (size_t i = 0; i < u->nslots; i++)
        free(u->slots[i].at);
    free(u->at);
    free(u->slots);
    free(u->active);
}
