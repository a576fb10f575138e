/*
 * stuck.h: what rank 0 has heard of all processes, and who of them can go on.
 */
#ifndef STUCK_H
#define STUCK_H

#include "ranks/members.h"
#include "stuck/state.h"

struct meeting;

/* What keeps a wait from ending. */
struct cause {
    const struct fact *call;
    struct meeting *meeting;
    const struct notice *join;
    const struct state_op *signals;
};

struct process { // the newest description of one
    char *data;  // NULL: it has never waited
    const struct state_head *head;
    const struct state_wait *waits;
    const struct recent_call *items;
    const struct state_op *ops;
    const struct state_comm *comms;
    const struct pair_count *pairs;
    const int32_t *ints;
    const char *failure, *unlooked;
    unsigned heard, suspect_heard;
    uint64_t suspect_activity;
    double suspect_worked;
    double since; // it has described itself like this
    bool fresh;   // not looked at yet
    bool host;    // its threads can go on
    struct op_mark {
        bool begins, ends; // it can
        bool held;         // by the call that is to launch it, which waits
        int meeting;
        int first_behind; // among `behind`; to that of the next one
        int open;         // how many before it have not ended
    } * marks;            // of each operation, and one more
    int *behind;          // operations that come after one
    bool others;          // it waits for signals, or on what others have aborted
    int *awaited;         // meetings that it has not called for yet
    size_t nawaited, awaited_size;
    // Where it is stuck (NULL: it is not), and why.
    const struct state_wait *wait;
    struct cause cause;
};

/* Where calls of several ranks meet: a collective, or a send and its receive. */
enum status { NEVER, BEGUN, WITH_OP, BY_HOST, UNKNOWN };

struct meeting {
    uint64_t comm, seq;
    int from, to;              // of a send; -1: a collective
    int n, here, number, lost; // lost: ranks that have left, or ended
    unsigned char *status;     // by rank; of a send: the sender, the receiver
    int *who, *op;             // process (-1: not known), operation
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
bool stuck_finished(const struct process *process);
bool stuck_can_call(const struct stuck *s, int p);
bool stuck_member_here(const struct stuck *s, const struct meeting *meeting, int member);
bool stuck_launched_here(const struct stuck *s, const struct fact *call,
                         const struct meeting *meeting, int member);
struct meeting *stuck_meeting(struct stuck *s, const struct fact *fact);
bool stuck_wait_can(struct judge *j, int p, const struct state_wait *wait);
bool stuck_peer_can(const struct stuck *s, int p, const struct state_wait *wait, int q);
/* What keeps a launch from ending: a call that not all have made, or a join; NULL:
 * nothing.
 */
const struct recent_call *stuck_missing(struct judge *j, const struct process *process,
                                        const struct state_wait *wait);
/* The first rank, from that one on, that a WAIT_LEAVE waits for; -1: none. */
int stuck_stays(struct judge *j, int p, const struct state_wait *wait, int rank);

bool stuck_is_message(const struct state_wait *wait); // MPI_Send, MPI_Recv and the like
bool stuck_in_mpi(const struct process *process);
void marks_find(struct judge *j); // where calls meet
void marks_set(struct judge *j);
void marks_forget(struct stuck *s);

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
