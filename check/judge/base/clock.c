/*
 * clock.c: clocks: how far something comes after each slot.
 */
#include "base/clock.h"

static void widen(struct clock *c, int n) {
    if (n <= c->n)
        return;
    c->at = must_grow(c->at, (size_t)n * sizeof *c->at);
    memset(c->at + c->n, 0, (size_t)(n - c->n) * sizeof *c->at);
    c->n = n;
}

void clock_join(struct clock *into, const struct clock *from) {
    widen(into, from->n);
    for (int s = 0; s < from->n; s++)
        if (from->at[s] > into->at[s])
            into->at[s] = from->at[s];
}

void clock_reach(struct clock *c, int slot, uint64_t seq) {
    widen(c, slot + 1);
    if (seq > c->at[slot])
        c->at[slot] = seq;
}

bool clock_covers(const struct clock *c, int slot, uint64_t seq) {
    return seq <= (slot < c->n ? c->at[slot] : 0);
}

void clock_copy(struct clock *into, const struct clock *from) {
    widen(into, from->n);
    for (int s = 0; s < into->n; s++)
        into->at[s] = s < from->n ? from->at[s] : 0;
}

void clock_clear(struct clock *c) {
    if (c->n > 0)
        memset(c->at, 0, (size_t)c->n * sizeof *c->at);
}

void clock_free(struct clock *c) {
    free(c->at);
    *c = (struct clock){0};
}
