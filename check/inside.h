/*
 * inside.h: what the parts of the judge share: the judge itself.
 *
 *   judge.c    the events, handed to the parts; threads, groups
 *   order.c    clocks: what comes before what
 *   uses.c     memory, and who uses it: races, ranges, freed, left behind
 *   graph.c    captures and what a launch of them does
 *   report.c   a report's text; said once
 *   calls.c    calls in words; what the ranks of a communicator must agree on; who
 * compares them waits.c    what this process waits for, described for rank 0 stuck.c on
 * rank 0: who can go on, and who never will
 *
 * Arrows point down this list's order: judge.c → graph → uses, calls, waits, stuck →
 * order, report.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "base.h"
#include "judge.h"
#include "order.h"

struct thread { // one of the program's that has entered
    int number;
    struct thread_wait *wait; // waits.c's; NULL: it computes
    struct group *group;      // judge.c's; the open one
    struct told *told;        // judge.c's; what it told of last, should that fail
    struct thread *next;
};

struct judge {
    struct judge_outside outside;
    struct judge_options options;
    int rank, nranks; // of the world
    char host[JUDGE_HOST];
    bool over;                       // the job is ending: nothing is judged any more
    struct thread *threads, *thread; // the one that is in; NULL: the front's helper
    // H: what the host knows to have happened. One for all threads: what one of them has
    // waited for it may have told the others, in ways that nobody here sees.
    struct clock known;
    struct order *order;
    struct uses *uses;
    struct graphs *graphs;
    struct calls *calls;
    struct waits *waits;
    struct stuck *stuck;
    struct reports *reports;
};

/* --- report.c --- */
struct text {
    char *at;
    size_t used, size;
};
void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void add_ranks(struct text *text, const int *ranks, int n); // "rank 1", "ranks 0, 1, 4"
const char *place(struct judge *j, uint64_t site, char out[JUDGE_PLACE]);
/* Says the report and empties it; the job ends unless it `may_go_on` and checks only
 * warn. What was said before of the same places (`key`, 0: always new) is not said again.
 */
void report(struct judge *j, struct text *text, bool may_go_on, uint64_t key);
void note(struct judge *j, struct text *text); // says it, and goes on

/* --- calls.c --- */
/* A call of NCCL that is issued: the position in its stream (slot, seq) and the stream's
 * clock behind it (which covers it). Calls of one group on one stream have the same
 * position; those of one group have the same number, on whatever streams: they begin
 * together. */
struct position {
    int slot; // -1: of no stream (JUDGE_SPLIT, JUDGE_REGISTER)
    uint64_t seq;
    const struct clock *clock; // NULL without a stream
    uint64_t group;            // 0: of none; never the same again
    bool captured;             // a graph makes the call
};
void calls_free(struct judge *j);
uint64_t calls_issued(struct judge *j, const struct judge_call *call,
                      struct position at); // its index
void calls_taken_back(struct judge *j,
                      int comm); // the newest of this thread, which failed
void calls_joins(struct judge *j, const struct judge_join *join);
void calls_join_failed(struct judge *j);
void calls_id_made(struct judge *j, uint64_t id, struct judge_at at);
int calls_comm_made(struct judge *j, uint64_t id, int rank, int nranks, int device,
                    struct judge_at at);
uint64_t calls_split_id(struct judge *j, int comm, int color);
void calls_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at);
void calls_comm_used_after(struct judge *j, int comm, struct judge_at at);
struct comm_facts { // what others need to know of a communicator
    uint64_t id;
    int number; // for people: the how-many-th of this process
    int rank, nranks, device;
    bool gone;
    struct judge_at made, ended;
};
const struct comm_facts *calls_comm(struct judge *j, int comm);
size_t call_send_bytes(struct judge *j,
                       const struct judge_call *call); // of sendbuff; 0: not used
size_t call_recv_bytes(struct judge *j,
                       const struct judge_call *call); // of recvbuff; 0: not used
const char *call_words(char out[JUDGE_PLACE],
                       const struct judge_call *call); // "ncclReduce(count 4, …)"
void calls_flush(struct judge *j); // sends what was recorded to who compares it
void calls_failure(struct judge *j, const char *text,
                   struct judge_at at); // the newest, for reports
/* Calls of `comm` (-1: of any) that the host does not know to be done: how many, the
 * first four. */
int calls_unfinished(struct judge *j, int comm, struct judge_call first[4],
                     uint64_t index[4]);
void calls_seen(
    struct judge *j); // some thread's host clock has grown: forget what it covers

/* --- waits.c --- */
void waits_begin_order(struct judge *j, const struct clock *what, bool poll,
                       struct judge_at at);
void waits_begin_launch(struct judge *j, struct judge_at at);
void waits_begin_leave(struct judge *j, int comm, struct judge_at at);
void waits_begin_mpi(struct judge *j, const void *mpi_comm, int peer, bool poll,
                     struct judge_at at);
void waits_begin_finish(struct judge *j, bool finalize, struct judge_at at);
void waits_begin_poll_comm(struct judge *j, int comm, struct judge_at at);
/* Ends the wait of the thread that is in; the clock that was waited for (NULL: of no
 * stream), to be joined by judge.c where it has happened. */
void waits_end(struct judge *j, struct clock *what);
/* A host function: queued (its number is the judge's), begun by the thread that is in,
 * ended. */
void waits_function_queued(struct judge *j, int function, struct position at);
void waits_function_begins(struct judge *j, int function);
void waits_function_ends(struct judge *j, int function);
void waits_thread_gone(struct judge *j, struct thread *thread); // before it is freed
void waits_free(struct judge *j);
bool waits_tell(
    struct judge *j); // rank 0 hears of waits that last; true if there are any

/* --- messages between judges: the first byte says whose --- */
enum {
    MESSAGE_CALLS = 'C',
    MESSAGE_JOIN = 'J',
    MESSAGE_STATE = 'S',
    MESSAGE_ANSWER = 'A'
};
void calls_receive(struct judge *j, int from, const void *data, size_t bytes);
void waits_receive(struct judge *j, int from, const void *data,
                   size_t bytes); // MESSAGE_ANSWER
void stuck_receive(struct judge *j, int from, const void *data, size_t bytes);
void stuck_look(struct judge *j);
void stuck_free(struct judge *j);

#endif
