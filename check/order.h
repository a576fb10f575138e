/*
 * order.h: which operation comes before which, from the calls alone.
 *
 * Every stream has a slot; its operations count from 1. A clock says how far it comes
 * after each slot. C_s is a stream's clock, H the host's, E_e an event's; joining is the
 * element-wise maximum. Two operations are in order if the later one's clock covers the
 * earlier one. CUDA Runtime API, "Stream synchronization behavior"; NCCL User Guide,
 * "CUDA Stream Semantics".
 */
#ifndef ORDER_H
#define ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock {
    uint64_t *at; // per slot; slots beyond n are 0
    int n;
};

void clock_join(struct clock *into, const struct clock *from);
void clock_reach(struct clock *c, int slot, uint64_t seq);
bool clock_covers(const struct clock *c, int slot, uint64_t seq);
void clock_copy(struct clock *into, const struct clock *from);
void clock_free(struct clock *c);

#endif
