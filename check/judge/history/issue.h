/*
 * issue.h: operations and calls, put after what comes before them.
 */
#ifndef ISSUE_H
#define ISSUE_H

#include "history/windows.h"

struct latest {          // what a thread told of last
    bool join, in_group; // in_group: a call of the open group, which is not issued yet
    int captured;        // its calls: of this stream, + 1
    struct judge_at at;
    struct latest_use {
        struct use *use;
        struct judge_range range;
    } * uses;
    size_t nuses, uses_size;
    size_t ncalls;
};
struct latest *latest_begin(struct judge *j, struct judge_at at); // empty
void latest_clear(struct latest *latest);
void latest_free(struct latest *latest);
/* It has not happened. */
void latest_undo(struct judge *j, struct latest *latest);

/* An operation is queued in a slot whose clock is ready; `use` says what is known of it,
 * and is given away. */
void issue_op(struct judge *j, int slot, const struct judge_range *ranges, int n,
              struct use *use, struct latest *latest);
struct issued_call {
    struct judge_call call;
    int slot; // -1: of no stream
    bool captured;
};
/* Calls that happen together, each in its slot, whose clock is ready. */
void issue_calls(struct judge *j, const struct issued_call *calls, int n, bool grouped,
                 struct latest *latest);

#endif
