/*
 * comms.h: what the calls of this process are kept as, for those who describe them to
 * others.
 */
#ifndef COMMS_H
#define COMMS_H

#include "ranks/pending.h"

struct comm {
    struct comm_facts facts;
    int keeper; // the rank that compares
    enum judge_end how;
    bool left;
    struct judge_at suspended;   // call NULL: it is not
    uint64_t collectives, split; // split: the newest one's seq
    struct called called;
    struct map pairs; // peer and pair_what: struct pair_count
    // The newest operation or group, and the one before: each begins when the one before
    // it has ended.
    uint64_t group, *newest, *earlier;
    size_t nnewest, newest_size, nearlier, earlier_size;
    // The newest collective, and the thread that made it.
    uint64_t newest_site, newest_seq, newest_group;
    int thread;
    struct comm *same; // another rank of the same communicator
};

struct recent { // what a thread told of last: one call, or a group
    uint64_t group;
    bool open;
    struct recent_call *at;
    size_t n, size;
};

struct calls {
    struct numbers comms;
    struct map by_id; // struct comm
    struct fact *log;
    struct log_to {
        int rank;
        double since;
    } * log_to;
    size_t nlog, log_size, log_to_size;
    struct pending pending;
    uint64_t activity; // grows with all that happens
    char *failure;
    uint64_t failed_site;
};

struct comm *comm_of(struct judge *j, int comm);
struct pair_count *pair_count(struct comm *comm, int peer, enum pair_what what);
void name_call(char out[CALL_NAME], const char *call);
struct notice calls_notice(const struct judge_join *join); // NOTICE_JOINS

#endif
