/*
 * memory.h: memory, and who uses it: races, ranges, freed, left behind.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include "history/streams.h"
#include "history/uses.h"

struct allocation *uses_made(struct judge *j, const void *start, size_t bytes,
                             enum judge_memory_kind kind, int device, struct judge_at at);
/* A number that no other allocation has had; 0: the address is in none. */
uint64_t uses_serial(struct judge *j, const void *address);
/* Whether a kernel on `device` uses memory of another one that it may not. */
bool uses_out_of_reach(struct judge *j, const struct judge_range *ranges, int n,
                       enum judge_op_kind kind, int device, struct judge_at at);
/* The address from which an operation copies all bytes; 0: it does not. */
uint64_t uses_source(const struct judge_range *ranges, int n, enum judge_op_kind kind);
/* An operation's ranges and a call's buffers, by themselves; true if something is wrong.
 */
bool uses_check(struct judge *j, const struct judge_range *ranges, int n,
                enum judge_op_kind kind, bool captured, struct judge_at at);
/* An operation that reads a buffer of which nobody ever wrote a byte: what it writes is
 * anything, too. That buffer's address; 0: it reads none. */
uint64_t uses_nothing(struct judge *j, const struct judge_range *ranges, int n,
                      struct judge_at at);
bool uses_check_call(struct judge *j, const struct judge_call *call,
                     const struct stream *stream);
void fresh_not_sent(struct judge *j, const struct judge_call *call); // it failed
/* The ranges that a call uses. */
enum { CALL_RANGES = 3 };
int uses_of_call(struct judge *j, const struct judge_call *call,
                 struct judge_range out[CALL_RANGES]);
/* The operation `use` uses the range, after all that `clock` covers: races. */
void uses_add(struct judge *j, const struct judge_range *range, struct use *use,
              const struct clock *clock);
void uses_undo(struct judge *j, const struct judge_range *range, struct use *use);
/* Calls of one group, ranges[i] used by calls[of[i]], happen at the same time. */
void uses_group(struct judge *j, const struct judge_range *ranges, const int *of, int n,
                const struct judge_call *const *calls);
/* By the host, or (`slot` >= 0) by the newest operation there; the allocation is gone. */
void uses_freed(struct judge *j, const void *start, int slot, struct judge_at at);
/* A graph is launched whose operation (`use`) needs memory that was freed since. */
void uses_graph_gone(struct judge *j, const void *start, const struct use *use,
                     struct judge_at launch);
void uses_comm_ends(struct judge *j, int comm, enum judge_end how);
void uses_left(struct judge *j, struct text *text);
struct left { // so many things of a kind; where the newest was made
    size_t n;
    uint64_t site;
};
void count_left(struct left *left, struct judge_at made); // made by nobody: not one
void add_left(struct judge *j, struct text *text, const char *what, struct left left);

#endif
