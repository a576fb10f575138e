/*
 * stuck.h: what rank 0 has heard of all processes, and who of them can go on.
 */
#ifndef STUCK_H
#define STUCK_H

#include "ranks/members.h"
#include "stuck/state.h"

struct meeting;
struct process;

/* What keeps a wait from ending. */
struct cause {
    const struct fact *call;
    struct meeting *meeting;
    const struct notice *join;
    const struct state_op *signals;
};

/* An operation that its host does not know to be done. */
struct op {
    const struct state_op *told;
    struct op **before, **after; // what it comes after, what comes after it
    int nbefore, nafter;
    struct meeting *meeting; // with the calls of other ranks
    bool begins, ends;       // it can
    bool held;               // by the call that is to launch it, which waits
    int open;                // how many before it have not ended
};

struct wait {
    const struct state_wait *told;
    enum wait_kind kind;
    struct op **ops;                    // WAIT_ORDER: that it waits for
    const struct recent_call *launches; // WAIT_LAUNCH: what is to be launched
    const int32_t *ranks;               // WAIT_MPI: of the world
    int n;                              // of these; -1: not known
};

struct process { // the newest description of one
    int rank;
    char *data; // NULL: it has never waited
    const struct state_head *head;
    struct wait *waits;
    struct op *ops;
    const struct state_comm *comms;
    const struct pair_count *pairs;
    int nwaits, nops, ncomms, npairs;
    struct op **links; // the memory of all lists of operations
    const char *failure, *unlooked;
    unsigned heard, suspect_heard;
    uint64_t suspect_activity;
    double suspect_worked;
    double since;             // it has described itself like this
    bool fresh;               // not looked at yet
    bool host;                // its threads can go on
    bool others;              // it waits for signals, or on what others have aborted
    struct meeting **awaited; // that it has not called for yet
    size_t nawaited, awaited_size;
    // Where it is stuck (NULL: it is not), and why.
    const struct wait *wait;
    struct cause cause;
};
/* Makes a process of a message; false: it is none. */
bool process_read(struct process *process, int rank, const void *data, size_t bytes);
void process_free(struct process *process);
bool process_finished(const struct process *process); // without MPI_Finalize, or in it
bool process_in_mpi(const struct process *process);

/* Where calls of several ranks meet: a collective, or a send and its receive. */
enum status { NEVER, BEGUN, WITH_OP, BY_HOST, UNKNOWN };

struct meeting {
    uint64_t comm, seq;
    int from, to;      // of a send; -1: a collective
    int n, here, lost; // lost: ranks that have left, or ended
    struct met {       // by rank; of a send: the sender, the receiver
        enum status status;
        int who;       // its process; -1: not known
        struct op *op; // WITH_OP
    } * of;
    struct meeting *next;
};

struct stuck {
    struct process *of;
    int n;
    double changed, quiet;
    bool suspicious;
    double suspected; // since then
    double lacking;   // since then judge_calls has found one; 0: there is none
    struct meeting **meetings;
    size_t nmeetings, meetings_size;
    struct map by_key;
    bool silent; // all wait, and nothing has moved for long
};

/* can_go_on.c */
bool stuck_can_call(const struct stuck *s, int p);
bool stuck_member_here(const struct stuck *s, const struct meeting *meeting, int member);
bool stuck_launched_here(const struct stuck *s, const struct fact *call,
                         const struct meeting *meeting, int member);
bool stuck_wait_can(struct judge *j, int p, const struct wait *wait);
bool stuck_peer_can(const struct stuck *s, int p, const struct wait *wait, int q);
/* What keeps a launch from ending: a call that not all have made, or a join; NULL:
 * nothing.
 */
const struct recent_call *stuck_missing(struct judge *j, const struct wait *wait);
/* The first rank, from that one on, that a WAIT_LEAVE waits for; -1: none. */
int stuck_stays(struct judge *j, int p, const struct wait *wait, int rank);

bool stuck_is_message(const struct wait *wait); // MPI_Send, MPI_Recv and the like
void can_go_on_mark(struct judge *j);           // all who can

/* meetings.c */
struct meeting *stuck_meeting(struct stuck *s, const struct fact *fact);
/* What a process has told of a communicator of its own; NULL: nothing. */
const struct state_comm *stuck_told_of(const struct stuck *s, int p, uint64_t id,
                                       int rank);
void meetings_find(struct judge *j);
void meetings_forget(struct stuck *s);

/* For judge_receive and judge_look. */
void stuck_receive(struct judge *j, int from, const void *data, size_t bytes);
void stuck_look(struct judge *j);
void stuck_free(struct stuck *s);

/* verdict.c: where one is stuck, or goes on; says it. `p`: a process that is, -1: only
 * that nothing moves. */
void verdict_wait(struct judge *j, int p, bool goes_on);
void verdict(struct judge *j, int p);
/* Process p ends the job, by `at`; has anybody waited for it in NCCL? */
void verdict_ended(struct judge *j, int p, struct judge_at at);

#endif
