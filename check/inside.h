/*
 * inside.h: what the parts of the judge share: the judge itself.
 *
 *   judge.c    the events, handed to the parts; threads, groups
 *   order.c    clocks: what comes before what
 *   graph.c    captures and what a launch of them does
 *   issue.c    operations and calls, put behind what comes before them
 *   uses.c     memory, and who uses it: races, ranges, freed, left behind
 *   functions.c functions of the program on a stream
 *   later.c    calls that NCCL puts into their streams later
 *   shared.c   memory that several processes use
 *   detour.c   an order that another rank may bring about
 *   history.c  which operation used which bytes last
 *   report.c   a report's text; said once
 *   failed.c   calls that failed, and whether anybody looked
 *   waits.c    what this process waits for, described for rank 0
 *   calls.c    the communicators and calls of this process
 *   unseen.c   the operations that the host does not know to be done
 *   compare.c  what the ranks of a communicator must agree on, compared by one of them
 *   stuck.c    on rank 0: who will never go on
 *   verdict.c  on rank 0: that, in words
 *   marks.c    on rank 0: who can go on
 *   members.c  on rank 0: who joins a communicator, who has left it
 *   words.c    calls in words
 *   post.c     messages to the judges of other ranks
 *   base.c     memory, arrays, a map
 *
 * Arrows point down: judge → graph → issue → uses → history, shared, functions → waits →
 * calls → unseen, detours, and stuck → verdict → marks → members, and compare; all of
 * them → words, post, order, report → base.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "base.h"
#include "history.h"
#include "judge.h"
#include "order.h"

struct thread { // one of the program's that has entered
    int number;
    uint64_t name;             // judge_thread_name's; 0: none
    struct thread_wait *wait;  // waits.c's; NULL: it computes
    struct thread_wait *spare; // for the next wait
    struct group *group;       // judge.c's; the open one
    struct told *told;         // judge.c's; what it told of last, should that fail
    uint64_t meeting;          // judge_meets's, in which it is; 0: in none
    double asks_since, asked;  // it has made no other call since then; 0: it has
    struct function
        *function; // functions.c's; of the program, that runs in it on a stream
    struct thread *next;
};

struct judge {
    struct judge_outside outside;
    struct judge_options options;
    int rank, nranks; // of the world
    char host[JUDGE_HOST];
    bool last;         // all has come from the other ranks that will
    bool over;         // the job is ending: nothing is judged any more
    struct lock *lock; // judge.c's
    bool entered;
    double moment; // at which it was asked for since then; 0: it was not
    struct map threads_by_number;
    struct thread *threads, *thread; // the one that is in; NULL: the front's helper
    // H: what the host knows to have happened. One for all threads: what one of them has
    // waited for it may have told the others, in ways that nobody here sees.
    struct clock known;
    struct order *order;
    struct uses *uses;
    uint64_t groups;   // so far
    uint64_t meetings; // judge_meets's, so far
    struct functions *functions;
    struct later *later; // NULL: there was no call yet
    struct graphs *graphs;
    struct calls *calls;
    struct waits *waits;
    struct stuck *stuck;
    struct reports *reports;
    struct compare *compare;
    struct members *members;
    struct post *post;
    struct failures *failures;
    struct shared *shared;
    struct detours *detours;
};

/* The time. One moment for all that is told in one go: clocks are dear where calls are
 * short. */
static inline double now(struct judge *j) {
    if (!j->entered || j->moment == 0)
        j->moment = j->outside.now(j->outside.self);
    return j->moment;
}

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
void report_and_go_on(struct judge *j, struct text *text, uint64_t key); // always

struct reports *reports_new(void);
/* What `made` had given away is gone, as `what` says, when `at` is called, and somebody
 * still uses it; `state`: what else is so then; `kind`: the report's own number. */
void report_gone(struct judge *j, const char *what, struct judge_at made,
                 struct judge_at at, const char *state, const char *hint, uint64_t kind);
void reports_free(struct reports *reports);

/* --- failed.c --- */
struct failures *failures_new(void);
void failures_free(struct failures *failures);
void failed(struct judge *j, const char *text,
            struct judge_at at); // a call of the thread that is in
void failed_looked(struct judge *j);
/* How many failed of which nobody asked why, in all threads; the first, and what was said
 * of it.
 */
size_t failed_unlooked(const struct judge *j, struct judge_at *first, const char **words);
/* "3 calls returned errors, the first: …". */
void add_failures(struct judge *j, struct text *text, size_t n, struct judge_at first,
                  const char *words);
void add_unlooked(struct judge *j, struct text *text); // this process's; or nothing

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
    uint64_t captured;         // a graph makes the call: its number; 0: none does
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
    bool finalized; // which completes what is queued on it
    struct judge_at made, ended;
};
const struct comm_facts *calls_comm(struct judge *j, int comm);
size_t call_bytes(const struct judge_call *call); // of its elements
size_t call_send_bytes(struct judge *j,
                       const struct judge_call *call); // of sendbuff; 0: not used
size_t call_recv_bytes(struct judge *j,
                       const struct judge_call *call); // of recvbuff; 0: not used
const char *call_words(char out[JUDGE_PLACE],
                       const struct judge_call *call); // "ncclReduce(count 4, …)"
void calls_flush(struct judge *j); // sends what was recorded to who compares it
/* Captured, and not issued: its number among the captured collectives of the
 * communicator, or sends (receives) of one peer. */
uint64_t calls_captured(struct judge *j, const struct judge_call *call);
void calls_launched(struct judge *j, int comm); // a graph that has calls of it
void calls_failure(struct judge *j, const char *text,
                   struct judge_at at); // the newest, for reports
/* `done` reaches all calls of `comm` that the host does not know to be done. */
void calls_complete(struct judge *j, int comm, struct clock *done);
/* Calls of `comm` (-1: of any) that the host does not know to be done: how many, the
 * first four. */
int calls_unfinished(struct judge *j, int comm, struct judge_call first[4],
                     uint64_t index[4]);
/* Whether what is not known to be done comes before that use, by its clock. */
bool calls_before(struct judge *j, const struct use *use, const struct clock *clock);
bool calls_seen(
    struct judge *j); // some thread's host clock has grown: forget what it covers

/* --- words.c --- */
/* Whether a rank's part of a call of NCCL ends only when the source's has begun, since it
 * gets data from there. `root`: of a receive, the peer. */
bool part_needs(int kind, int root, int rank, int source);

/* --- shared.c --- */
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
void shared_unseen(struct judge *j); // from now on, an order may come about unseen
void shared_tell(struct judge *j, bool all);
void shared_receive(struct judge *j, int from, const void *data, size_t bytes);
void shared_free(struct judge *j);

/* --- detour.c --- */
struct fact;
void detour_call(struct judge *j, const struct fact *fact, struct position at);
void detour_taken_back(struct judge *j, const struct fact *fact);
void detour_heard(struct judge *j); // the host, of other ranks
/* Whether other ranks may put what comes behind `clock` after `first`. */
bool detour_possible(struct judge *j, const struct use *first, const struct clock *clock);
void detour_free(struct judge *j);

/* --- functions.c --- */
/* A function of the program that is queued on a stream. */
struct functions *functions_new(void);
void functions_free(struct functions *functions);
int function_new(struct judge *j, bool captured);
void function_queued(struct judge *j, int function, int slot, struct judge_at at);
void function_begins(struct judge *j, int function);
void function_ends(struct judge *j, int function);
const struct judge_at *
function_runs(const struct judge *j); // in the thread that is in; NULL: none
bool functions_queued(const struct judge *j);
/* Whether it comes before that use of memory. */
bool function_before(const struct function *function, const struct use *use);
/* Whether any that has not ended comes before it. */
bool functions_before(const struct judge *j, const struct use *use);

/* --- later.c --- */
/* Calls that return before NCCL has put them into their streams (blocking = 0). One that
 * was called, and what it returned; its communicator is ready. */
void later_free(struct later *later);
void later_called(struct judge *j, const struct judge_call *call);
void later_answered(struct judge *j, bool in_progress);
void later_comm_ready(struct judge *j, int comm);
/* The stream is asked, and has done all. That too may come too early, but NCCL's manual
 * has a loop that asks the stream first ("Asynchronous errors and error handling"). */
void later_asked(struct judge *j, int stream);
/* Whoever uses the stream, the device (-1: all) or the communicator meanwhile is named.
 */
void later_uses_stream(struct judge *j, int stream, struct judge_at at);
void later_uses_device(struct judge *j, int device, struct judge_at at);
void later_uses_comm(struct judge *j, int comm, struct judge_at at);

/* --- uses.c --- */
struct uses *uses_new(void);
void uses_free(struct uses *uses);
struct allocation *uses_made(struct judge *j, const void *start, size_t bytes,
                             enum judge_memory_kind kind, int device, struct judge_at at);
/* Belongs to a graph, which makes and frees it at each launch. */
void uses_of_graph(struct allocation *allocation);
/* A number that no other allocation has had; 0: the address is in none. */
uint64_t uses_serial(struct judge *j, const void *address);
bool uses_find(struct judge *j, const void *address, struct judge_memory *out);
void uses_open(struct judge *j, const void *address);
void uses_shared(struct judge *j, const void *address, uint64_t id);
void uses_kernel(struct judge *j); // one was launched: it may have written anything
void uses_peer_access(struct judge *j, int device, int peer, bool on);
/* Whether a kernel on `device` uses memory of another one that it may not. */
bool uses_out_of_reach(struct judge *j, const struct judge_range *ranges, int n,
                       int device, struct judge_at at);
/* The address from which an operation copies all bytes; 0: it does not. */
uint64_t uses_source(const struct judge_range *ranges, int n, struct judge_at at);
/* An operation's ranges and a call's buffers, by themselves; true if something is wrong.
 */
bool uses_check(struct judge *j, const struct judge_range *ranges, int n, uint64_t source,
                bool captured, struct judge_at at);
/* An operation that reads a buffer of which nobody ever wrote a byte: what it writes is
 * anything, too. That buffer's address; 0: it reads none. */
uint64_t uses_nothing(struct judge *j, const struct judge_range *ranges, int n,
                      struct judge_at at);
bool uses_check_call(struct judge *j, const struct judge_call *call,
                     const struct stream *stream);
/* The ranges that a call uses, at most 3. */
int uses_of_call(struct judge *j, const struct judge_call *call,
                 struct judge_range out[3]);
/* The operation `use` uses the range, behind all that `clock` covers: races. */
void uses_add(struct judge *j, const struct judge_range *range, struct use *use,
              const struct clock *clock);
void uses_undo(struct judge *j, const struct judge_range *range, struct use *use);
/* Calls of one group, ranges[i] used by calls[of[i]], happen at the same time. */
void uses_group(struct judge *j, const struct judge_range *ranges, const int *of, int n,
                const struct judge_call *const *calls);
/* By the host, or (`slot` >= 0) by the newest operation there; the allocation is gone. */
void uses_freed(struct judge *j, const void *start, int slot, struct judge_at at);
bool uses_host(struct judge *j, const void *start, size_t bytes, bool write,
               bool device_too, struct judge_at at);
bool uses_knew(struct judge *j, const void *address); // now or before
bool uses_faults(struct judge *j, const void *address, bool write, bool write_known,
                 uint64_t site);
bool uses_early(struct judge *j, const void *at, bool write);
int uses_lent(struct judge *j, const void *start, size_t bytes, bool write,
              struct judge_at at);
void uses_back(struct judge *j, int lent);
void uses_known(struct judge *j); // the host knows more than before
void uses_each(struct judge *j, const void *start,
               void (*each)(void *self, const void *start, size_t bytes, bool write),
               void *self);
/* A graph is launched whose operation (`use`) needs memory that was freed since. */
void uses_graph_gone(struct judge *j, const void *start, const struct use *use,
                     struct judge_at launch);
void uses_aborted(struct judge *j, int comm); // its operations are given up
/* What the call, which is not known to be done, was to write is anything now. */
void uses_spoilt(struct judge *j, const struct judge_call *call, struct judge_at at);
void uses_left(struct judge *j, struct text *text);
void uses_unwritten(struct judge *j, struct text *text); // the first copy of it
void add_left(struct judge *j, struct text *text, const char *what, size_t n,
              uint64_t site);

/* --- issue.c --- */
struct told {            // what a thread told of last
    bool join, in_group; // in_group: a call of the open group, which is not issued yet
    struct judge_at at;
    struct told_use {
        struct use *use;
        struct judge_range range;
    } * uses;
    size_t nuses, uses_size;
    int *comms; // of its calls
    size_t ncomms, comms_size;
};
void told_clear(struct told *told);
void told_free(struct told *told);
/* It has not happened. */
void told_undo(struct judge *j, struct told *told);

/* An operation is queued in a slot whose clock is ready; `use` says what is known of it,
 * and is given away. */
void issue_op(struct judge *j, int slot, const struct judge_range *ranges, int n,
              struct use *use, struct told *told);
struct issued_call {
    struct judge_call call;
    int slot;          // -1: of no stream
    uint64_t captured; // its number; 0: not by a graph
};
/* Calls that happen together, each in its slot, whose clock is ready; `launch` of a
 * graph: its number, 0 of none. */
void issue_calls(struct judge *j, const struct issued_call *calls, int n, bool grouped,
                 uint64_t launch, struct told *told);

/* --- graph.c --- */
struct graphs *graphs_new(void);
void graphs_free(struct graphs *graphs);
void graph_begins(struct judge *j, struct stream *stream, struct judge_at at);
int graph_ends(struct judge *j, struct stream *stream, bool success);
void graph_stream_gone(struct judge *j, struct stream *stream);
/* Into the graph that `stream` is captured into. */
void graph_op(struct judge *j, struct stream *stream, const struct judge_range *ranges,
              int n, bool makes, struct judge_at at);
void graph_function(struct judge *j, struct stream *stream, int function,
                    struct judge_at at);
void graph_record(struct judge *j, struct stream *stream, struct event *event);
/* True if the wait belongs to a graph, which the stream then belongs to. */
bool graph_waits(struct judge *j, struct stream *stream, int event);
/* Those of the calls that belong to a graph; leaves the others, and returns how many. */
int graph_calls(struct judge *j, struct judge_call *calls, int n);
int graph_instantiated(struct judge *j, int graph, struct judge_at at);
void graph_launched(struct judge *j, int executable, struct stream *stream,
                    struct judge_at at);
void graph_gone(struct judge *j, int graph);
void graph_executable_gone(struct judge *j, int executable);
/* The communicator is destroyed: NCCL waits until no graph holds a call on it any more
 * (its source, commDestroySync: "keep polling until all graphs referencing us die"). */
void graph_comm_ends(struct judge *j, int comm, struct judge_at at);
void graphs_left(struct judge *j, struct text *text);

/* --- waits.c --- */
void waits_begin_order(struct judge *j, const struct clock *what, bool poll,
                       struct judge_at at);
void waits_begin_launch(struct judge *j, struct judge_at at);
void waits_begin_leave(struct judge *j, int comm, struct judge_at at);
void waits_begin_mpi(struct judge *j, const void *whom, int peer, enum judge_way way,
                     bool poll, struct judge_at at);
void waits_begin_finish(struct judge *j, bool finalize, struct judge_at at);
void waits_begin_poll_join(struct judge *j, const struct judge_join *join,
                           struct judge_at at);
void waits_begin_poll_comm(struct judge *j, int comm, struct judge_at at);
/* The thread that is in has asked how a communicator is, and all is well. */
void waits_asks(struct judge *j);
/* Ends the wait of the thread that is in; the clock that was waited for (NULL: of no
 * stream), to be joined by judge.c where it has happened. */
void waits_end(struct judge *j, struct clock *what);
bool waits_for_launch(const struct judge *j); // the thread that is in
/* A host function: queued (its number is the judge's), begun by the thread that is in,
 * ended. */
void waits_function_queued(struct judge *j, int function, struct position position,
                           struct judge_at at);
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
    MESSAGE_ANSWER = 'A',
    MESSAGE_SHARED = 'M'
};
/* A message to rank `to`, for judge_receive there; to this one itself it comes when it
 * looks. */
void post(struct judge *j, int to, const void *data, size_t bytes);
const void *post_take(struct judge *j,
                      size_t *bytes); // NULL: there is none; until the next
void post_free(struct judge *j);
void compare_receive(struct judge *j, const void *data, size_t bytes); // MESSAGE_CALLS
void compare_look(struct judge *j); // says what has waited long enough for the others
void compare_free(struct judge *j);
void members_receive(struct judge *j, int from, const void *data,
                     size_t bytes); // MESSAGE_JOIN
void members_look(struct judge *j);
void members_free(struct judge *j);
void waits_receive(struct judge *j, int from, const void *data,
                   size_t bytes); // MESSAGE_ANSWER
void stuck_receive(struct judge *j, int from, const void *data, size_t bytes);
void stuck_look(struct judge *j);
void stuck_free(struct judge *j);

#endif
