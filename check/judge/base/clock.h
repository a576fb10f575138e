/*
 * clock.h: which operation comes before which, from the calls alone.
 *
 * Every stream has a slot, as has every branch of a graph that is launched; the
 * operations of a slot count from 1. A clock says how far it comes after each slot. C_s
 * is a slot's clock, H the host's, E_e an event's; joining is the element-wise maximum.
 * Two operations are in order if the later one's clock covers the earlier one. CUDA
 * Runtime API, "Stream synchronization behavior"; NCCL User Guide, "CUDA Stream
 * Semantics".
 */
#ifndef CLOCK_H
#define CLOCK_H

#include "base/base.h"
#include "judge.h"

struct clock {
    uint64_t *at; // per slot; slots beyond n are 0
    int n;
};

void clock_join(struct clock *into, const struct clock *from);
void clock_reach(struct clock *c, int slot, uint64_t seq);
bool clock_covers(const struct clock *c, int slot, uint64_t seq);
void clock_copy(struct clock *into, const struct clock *from);
void clock_clear(struct clock *c); // its memory stays
void clock_free(struct clock *c);

struct record { // a cudaEventRecord; at.call NULL: none
    struct judge_at at;
    int slot;
    uint64_t seq;
};

#endif
