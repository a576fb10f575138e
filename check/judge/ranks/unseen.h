/*
 * unseen.h: the operations that the host does not know to be done.
 */
#ifndef UNSEEN_H
#define UNSEEN_H

#include "ranks/calls.h"
#include "ranks/facts.h"

enum { FEW_BEFORE = 2 };
struct unseen_op {
    uint64_t number; // in the order of issue
    int slot;
    uint64_t seq, group;
    int comm; // -1: it waits for signals of other ranks
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

struct unseen {
    struct unseen_op **at; // by number; some are seen
    size_t n, size, nseen;
    uint64_t next; // number
    struct unseen_slot *slots;
    size_t nslots;
    int *active; // slots that have any
    size_t nactive, active_size;
};

struct unseen_op *unseen_add(struct unseen *u, struct position at, int comm);
void unseen_behind(struct unseen_op *op, uint64_t number);
// NULL: it is seen
struct unseen_op *unseen_find(const struct unseen *u, uint64_t number);
/* The newest of each slot that the clock covers; all calls of a group. */
size_t unseen_covered(const struct unseen *u, const struct clock *clock,
                      const struct unseen_op ***list, size_t *size);
// all of the communicator's; or only that one
void unseen_forget(struct unseen *u, int comm, const struct unseen_op *only);
/* Forgets what the clock covers. */
void unseen_cover(struct unseen *u, const struct clock *known);
void unseen_free(struct unseen *u);

#endif
