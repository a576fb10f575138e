/*
 * waits.h: what this process waits for, described for rank 0 when it lasts.
 */
#ifndef WAITS_H
#define WAITS_H

#include "ranks/calls.h"
#include "stuck/state.h"

struct waits {
    uint64_t activity, activity_sent;
    double sent; // to rank 0, last
    bool sent_waiting;
    bool finished;
    int finish_thread;
    enum wait_kind finish;
    struct judge_at finish_at;
};

void waits_begin_order(struct judge *j, const struct clock *what, bool poll,
                       struct judge_at at);
void waits_begin_abort(struct judge *j, const struct clock *what, struct judge_at at);
void waits_begin_finish(struct judge *j, enum judge_finish how, struct judge_at at);
void waits_begin_poll_comm(struct judge *j, int comm, struct judge_at at);
/* The thread that is in has asked how a communicator is, and all is well. */
void waits_asks(struct judge *j);
/* It has asked, by a call that is no wait for MPI, and the answer was not "not yet". */
void waits_answered(struct judge *j, struct judge_at at);
/* Ends the wait of the thread that is in; the clock that was waited for (NULL: of no
 * stream), to be joined by wait_calls.c where it has happened. */
void waits_end(struct judge *j, struct clock *what);
bool waits_for_launch(const struct judge *j);                   // the thread that is in
void waits_thread_gone(struct judge *j, struct thread *thread); // before it is freed
// rank 0 hears of waits that last; true if there are any
bool waits_tell(struct judge *j);

#endif
