/*
 * shared.h: memory that several processes use.
 */
#ifndef SHARED_H
#define SHARED_H

#include "memory/history.h"

struct shared_part {
    uint64_t memory;                // the same in all processes
    uint64_t from, to, bytes, made; // from, to: in it
    double opened;                  // by this process; what it made: 0
    int32_t write, own;             // own: of memory that this process made
};
void shared_uses(struct judge *j, const struct shared_part *part, const struct use *use,
                 const struct clock *clock);
void shared_taken_back(struct judge *j, const struct use *use);
/* The owner frees all of it, another closes it. */
void shared_gone(struct judge *j, const struct shared_part *part, struct judge_at at);
/* Somebody may know from now on that what the clock covers has ended. */
void shared_ends(struct judge *j, const struct clock *clock);
void shared_tell(struct judge *j, bool all);
void shared_receive(struct judge *j, int from, const void *data, size_t bytes);
void shared_free(struct judge *j);

#endif
