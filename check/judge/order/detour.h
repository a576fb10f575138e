/*
 * detour.h: an order that another rank may bring about.
 */
#ifndef DETOUR_H
#define DETOUR_H

#include "memory/history.h"
#include "ranks/calls.h"
#include "ranks/facts.h"

void detour_call(struct judge *j, const struct fact *fact, struct position at);
void detour_taken_back(struct judge *j, const struct fact *fact);
void detour_heard(struct judge *j); // the host, of other ranks
/* Whether other ranks may put what comes after `clock` after `first`. */
bool detour_possible(struct judge *j, const struct use *first, const struct clock *clock);
struct detours {
    struct passed *calls;   // a ring
    size_t n, size;         // n: so far
    uint64_t moment;        // grows with each call, and when the host hears of others
    uint64_t heard;         // at that moment last
    struct clock forgotten; // of calls that give, and are not remembered
};
void detours_free(struct detours *detours);

#endif
