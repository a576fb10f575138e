/*
 * waits.h: what a thread waits for, or asks about.
 */
#ifndef EVENTS_WAITS_H
#define EVENTS_WAITS_H

#include "events/ranks.h"

/* The thread waits until another one of the program has ended (pthread_join;
 * judge_thread_name's); 0: no longer. */
void judge_waits_thread(struct judge *j, uint64_t name);

/* Begun before a call that may block, ended when it has returned; of the thread that is
 * in. What the wait is for is what was queued when it began. */
void judge_wait_stream(struct judge *j, int stream, struct judge_at at);
void judge_wait_event(struct judge *j, int event, struct judge_at at);
// -1: all devices
void judge_wait_device(struct judge *j, int device, struct judge_at at);
/* Inside NCCL, for all that this thread told of since the group began (joins, splits,
 * calls that must be launched). */
void judge_wait_launch(struct judge *j, struct judge_at at);
/* ncclCommDestroy or ncclCommFinalize: for the ranks of the communicator on this machine.
 */
void judge_wait_leave(struct judge *j, int comm, struct judge_at at);
/* ncclCommAbort, before judge_comm_ends: the communicator's operations that are under way
 * end at once, others when it is their turn in their streams, after those of other
 * communicators. False: there are none. */
bool judge_wait_abort(struct judge *j, int comm, struct judge_at at);
/* In MPI: for the ranks that judge_outside.mpi_ranks makes of `whom`, which stays
 * readable until the wait ends: for all of them (JUDGE_ALL, or the one with peer >= 0),
 * or for any of them (JUDGE_ONE_OF); JUDGE_ANY: nobody knows for whom. */
enum { JUDGE_ALL = -1, JUDGE_ANY = -2, JUDGE_ONE_OF = -3 };
/* What a call of MPI is, and all that the process has under way in MPI: otherwise, with a
 * request that is not completed, say, it is JUDGE_MORE. A collective call is no message;
 * JUDGE_MEETS: one that no rank can leave before all have come (MPI_Barrier). */
enum judge_way { JUDGE_MORE, JUDGE_NO_MESSAGE, JUDGE_MEETS, JUDGE_SENDS, JUDGE_RECEIVES };
void judge_wait_mpi(struct judge *j, const void *whom, int peer, enum judge_way way,
                    struct judge_at at);

/* `happened`: what was waited for has happened, and the host knows it. */
void judge_wait_end(struct judge *j, bool happened);

/* Asking is not waiting; but who asks for ever waits. `done`: the answer. */
void judge_poll_stream(struct judge *j, int stream, bool done, struct judge_at at);
void judge_poll_event(struct judge *j, int event, bool done, struct judge_at at);
void judge_poll_mpi(struct judge *j, bool done, struct judge_at at);
/* Whether a communicator is ready. Not yet, after a call of this thread on it: that call
 * is what it waits for (until it is finalized). */
void judge_poll_comm(struct judge *j, int comm, bool done, struct judge_at at);
/* The same of a communicator that is still being made, by this join: not yet. */
void judge_poll_join(struct judge *j, const struct judge_join *join, struct judge_at at);

/* Before judge_wait_mpi: it is the collective call of that number among those that all
 * processes make together, from 1. */
void judge_meets(struct judge *j, uint64_t number);

#endif
