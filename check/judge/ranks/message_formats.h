/*
 * message_formats.h: what one judge tells another of calls and communicators.
 */
#ifndef MESSAGE_FORMATS_H
#define MESSAGE_FORMATS_H

#include "base/self.h"
#include "judge.h"

/* The rank that compares the calls on a communicator. */
static inline int comm_keeper(const struct judge *j, uint64_t id) {
    return (int)(mixed(id, 1) % (uint64_t)j->nranks);
}

/* What of other ranks an operation that is no call of NCCL waits for. */
enum awaits { AWAITS_NOTHING, AWAITS_SIGNALS, AWAITS_KERNELS };

/* A call, as its communicator's keeper and rank 0 are told of it. */
enum fact_what { FACT_CALL, FACT_BACK, FACT_ENDED };

struct fact {
    uint64_t comm, index, seq; // seq: among collectives, or sends (receives) of one peer
    uint64_t count, site;
    int32_t what, rank, nranks, world, device, number;
    int32_t kind, type, redop, root;
    bool captured, grouped; // by a graph, in a group
    // The first send to a peer, and the first receive from it: the later of the two.
    enum { NOT_BOTH, APART, TOGETHER } both;
    uint64_t send_offset, recv_offset, config; // as in judge_call
};

/* How far a rank has come on a communicator. */
struct called {
    uint64_t ops;
    // Calls captured since a graph with calls of it was launched last: how many; the
    // newest.
    uint64_t captured, captured_site;
};

/* A rank's sends to one peer, or its receives from it; its signals, or waits for them. */
enum pair_what { PAIR_RECEIVES, PAIR_SENDS, PAIR_WAITS, PAIR_SIGNALS };
struct pair_count {
    uint64_t comm, n;
    uint64_t group; // of the first
    uint64_t site;  // of the newest signal
    uint64_t known; // at the rank's end: those that the host knew to have ended
    int32_t rank, peer;
    enum pair_what what;
};

/* To a keeper: this, and then the facts. */
struct batch {
    unsigned char message, pad[7];
    char host[JUDGE_HOST];
};

/* To rank 0: who joins, who has left. */
enum notice_what {
    NOTICE_JOINS,
    NOTICE_FAILED,
    NOTICE_MADE,
    NOTICE_ENDED,
    NOTICE_ID,
    NOTICE_HOLD
};
enum { CALL_NAME = 40 };
struct notice {
    unsigned char message, pad[7];
    uint64_t id, site;
    struct called called; // at the end, as the next two
    uint64_t collectives;
    uint64_t known; // of the collectives: those that the host knew to have ended
    uint64_t same;  // NOTICE_ID: judge_id_made's
    int32_t what, rank, nranks, device, number;
    int32_t how;    // NOTICE_JOINS: enum judge_joining; NOTICE_ENDED: enum judge_end
    int32_t thread; // NOTICE_JOINS: the judge's number of it; the first one is 1
    char call[CALL_NAME], host[JUDGE_HOST], bus_id[32];
};

/* What a thread has told of: a call, or that a rank joins. */
struct recent_call {
    bool join;       // has a notice; a call has a fact
    int comm;        // of a call
    uint64_t number; // of the operation; 0: of none
    union {
        struct fact fact;
        struct notice notice;
    };
};

#endif
