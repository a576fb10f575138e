/*
 * round_trips.h: an order that another rank may bring about.
 */
#ifndef ROUND_TRIPS_H
#define ROUND_TRIPS_H

#include "ranks/calls.h"
#include "ranks/message_formats.h"

void round_trip_call(struct judge *j, const struct fact *fact, struct position at);
void round_trip_taken_back(struct judge *j, const struct fact *fact);
void round_trip_heard(struct judge *j); // the host, of other ranks
/* Whether other ranks may put what comes after `clock` after that operation. */
bool round_trip_possible(struct judge *j, int slot, uint64_t seq,
                         const struct clock *clock);
struct round_trips {
    struct passed *calls;   // a ring
    size_t n, size;         // n: so far
    uint64_t moment;        // grows with each call, and when the host hears of others
    uint64_t heard;         // at that moment last
    struct clock forgotten; // of calls that give, and are not remembered
};
void round_trips_free(struct round_trips *round_trips);

#endif
