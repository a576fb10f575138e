/*
 * pending.h: the operations that the host does not know to be done.
 */
#ifndef PENDING_H
#define PENDING_H

#include "ranks/calls.h"
#include "ranks/message_formats.h"

enum { FEW_BEFORE = 2 };
struct pending_op {
    uint64_t number; // in the order of issue
    int slot;
    uint64_t seq, group;
    int comm; // negative: -enum awaits, it is no call
    struct judge_call call;
    struct fact fact;
    struct judge_at at;
    uint64_t *before; // numbers of those that must end first; most have few
    uint64_t few[FEW_BEFORE];
    uint64_t like; // has the same `before` as that one; 0: its own
    size_t nbefore, before_size;
    int described; // its place in the newest description, if that has it
    bool seen;
};

struct pending {
    struct pending_op **at; // by number; some are seen
    size_t n, size, nseen;
    uint64_t next; // number
    struct pending_slot *slots;
    size_t nslots;
    int *active; // slots that have any
    size_t nactive, active_size;
};

struct pending_op *pending_add(struct pending *u, struct position at, int comm);
void pending_comes_after(struct pending_op *op, uint64_t number);
// NULL: it is seen
struct pending_op *pending_find(const struct pending *u, uint64_t number);
/* The newest of each slot that the clock covers; all calls of a group. */
size_t pending_covered(const struct pending *u, const struct clock *clock,
                       const struct pending_op ***list, size_t *size);
// all of the communicator's; or only that one
void pending_forget(struct pending *u, int comm, const struct pending_op *only);
/* Joins the clock: what a communicator's operations come after, of other communicators.
 */
void pending_others(const struct pending *u, int comm, struct clock *clock);
/* Forgets what the clock covers. */
void pending_cover(struct pending *u, const struct clock *known);
void pending_free(struct pending *u);

#endif
