/*
 * calls.h: the communicators and calls of this process.
 */
#ifndef CALLS_H
#define CALLS_H

#include "base/self.h"
#include "say/finding.h"

/* A call of NCCL that is issued: the position in its stream (slot, seq) and the stream's
 * clock after it (which covers it). Calls of one group on one stream have the same
 * position; those of one group have the same number, on whatever streams: they begin
 * together. */
struct position {
    int slot; // -1: of no stream (JUDGE_SPLIT to JUDGE_RESUME)
    uint64_t seq;
    const struct clock *clock; // NULL without a stream
    uint64_t group;            // 0: of none; never the same again
    bool captured;             // a graph makes the call
};
void calls_free(struct calls *calls);
// its index
uint64_t calls_issued(struct judge *j, const struct judge_call *call, struct position at);
void calls_taken_back(struct judge *j); // the newest of this thread, which failed
void calls_joins(struct judge *j, const struct judge_join *join);
void calls_join_failed(struct judge *j);
void calls_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at);
struct comm_facts { // what others need to know of a communicator
    uint64_t id;
    int number; // for people: the how-many-th of this process
    int rank, nranks, device;
    bool gone;
    bool finalized; // which completes what is queued on it
    bool blocks;    // its calls return when they are done
    struct judge_at made, ended;
};
const struct comm_facts *calls_comm(struct judge *j, int comm);
size_t call_bytes(const struct judge_call *call); // of its elements
// of sendbuff; 0: not used
size_t call_send_bytes(struct judge *j, const struct judge_call *call);
// of recvbuff; 0: not used
size_t call_recv_bytes(struct judge *j, const struct judge_call *call);
// sends what was recorded to who compares it; all: what is very new, too
void calls_flush(struct judge *j, bool all);
/* Captured, and not issued; but NCCL may connect ranks, and wait for that, even then. */
void calls_captured(struct judge *j, const struct judge_call *call, uint64_t group);
void calls_not_captured(struct judge *j, int comm); // the newest, which failed
void calls_launched(struct judge *j, int comm);     // a graph that has calls of it
// the newest, for reports
void calls_failure(struct judge *j, const char *text, struct judge_at at);
/* `done` reaches all calls of `comm` that the host does not know to be done. */
void calls_complete(struct judge *j, int comm, struct clock *done);
/* Whether what is not known to be done comes before that use, by its clock. */
bool calls_before(struct judge *j, int slot, uint64_t seq, const struct clock *clock);
// some thread's host clock has grown: forget what it covers
bool calls_seen(struct judge *j);
void calls_check_unfinished(struct judge *j); // at the end of the program
/* {comm}, {comm_rank}, {nranks}, {device} of a finding. */
void set_comm(struct judge *j, struct finding *f, int comm);

#endif
