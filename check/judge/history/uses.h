/*
 * uses.h: which operation used which bytes last, per slot; who is in order with
 * nobody.
 *
 * A range of bytes has, for every slot, the newest operation that wrote it and the newest
 * that read it: operations of a slot are in order, so who comes after that one comes
 * after all. They lie in trees that know the newest operation of each part, so that a
 * question takes O(log n) steps however many operations there are.
 */
#ifndef USES_H
#define USES_H

#include "base/clock.h"

/* An operation that used memory; kept while some bytes remember it. */
struct use {
    int holders;
    struct judge_at at;
    struct judge_call call; // of NCCL, if is_call
    uint64_t index;         // of that call on its communicator
    struct clock behind;    // its clock, while functions of the program are queued
    int slot, thread;       // the judge's number of who issued it
    uint64_t seq;
    uint64_t source; // what it writes comes from there; 0: not, or not alone
    bool is_call;
    bool moves;  // bytes: a copy, or a set
    bool makes;  // cudaMallocAsync: the memory is there after it
    bool first;  // before it nobody had written there
    int awaits;  // enum awaits
    bool legacy; // in a default stream
};
struct use *use_new(struct judge_at at);
void use_drop(struct use *use);

struct history { // of one allocation
    struct track {
        int slot;
        struct part *writes, *reads;
    } * tracks;
    size_t ntracks, size;
};

/* The operation at (use->slot, use->seq) uses bytes [from, to); `clock` says what it
 * comes after. The return value is one that it races with, NULL if there is none;
 * `its_write` whether that one writes. */
const struct use *history_add(struct history *history, uint64_t from, uint64_t to,
                              bool write, struct use *use, const struct clock *clock,
                              bool *its_write);
/* An operation that uses bytes of [from, to) (writing them, if the other is not to
 * `write`), of which `clock` does not know and which `passes` lets through; NULL: none.
 */
const struct use *history_beyond(const struct history *history, uint64_t from,
                                 uint64_t to, bool write, const struct clock *clock,
                                 bool (*passes)(const struct use *use, void *self),
                                 void *self, bool *its_write);
/* Takes an operation back that has not happened. */
void history_undo(struct history *history, uint64_t from, uint64_t to, struct use *use);
/* Calls `each` for all parts that operations use which `clock` does not know. */
void history_each(const struct history *history, const struct clock *clock,
                  void (*each)(void *self, const struct use *use, uint64_t from,
                               uint64_t to, bool write),
                  void *self);
/* Forgets the uses that are `gone`. */
void history_forget(struct history *history,
                    bool (*gone)(const struct use *use, void *self), void *self);
void history_free(struct history *history);
size_t history_parts(void); // in all histories of this process

#endif
