/*
 * facts.h: what one judge tells another of calls and communicators, and what the files
 * that make and read that share.
 */
#ifndef FACTS_H
#define FACTS_H

#include "inside.h"

/* --- What travels ------------------------------------------------------------------ */

/* A call, as its communicator's keeper and rank 0 are told of it. */
enum fact_what { FACT_CALL, FACT_BACK, FACT_ORDER, FACT_ENDED };

struct fact {
    uint64_t comm, index, seq; // seq: among collectives, or sends (receives) of one peer
    uint64_t count, site;
    int32_t what, rank, nranks, world, device, number;
    int32_t kind, type, redop, root, ordered;
    int32_t captured; // 0, or its number among what was captured
    union {
        struct { // FACT_ORDER: the operations of another communicator under way then
            uint64_t other, other_first, other_last, other_site;
            int32_t other_number, pad;
        };
        struct { // of NCCL: as in judge_call
            uint64_t send_offset, recv_offset;
            uint8_t send_registered, recv_registered; // enum judge_registered
            uint8_t grouped;
            uint64_t captures; // if captured: struct captures
        };
    };
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
    uint64_t id, site, ops, collectives;
    uint64_t known; // of the collectives: those that the host knew to have ended
    uint64_t captured, captured_site; // at the end: as of a communicator below
    int32_t what, rank, nranks, device, how, number;
    char call[CALL_NAME], host[JUDGE_HOST], bus_id[32];
};

/* --- words.c ----------------------------------------------------------------------- */

bool pairs(int kind); // sends and receives
const char *fact_words(char out[JUDGE_PLACE], const struct fact *fact);
const char *fact_site(struct judge *j, char out[JUDGE_PLACE], const struct fact *fact);
/* " of ranks 5, 6, 7": tells communicators of one number apart. */
void add_members(struct text *text, int nranks, const int *world);
/* How many ranks a communicator has, and who they are where the numbers differ; by rank,
 * -1: not known. namesakes: the report has another of this number. */
void add_size(struct text *text, int number, bool namesakes, int nranks, const int *world,
              const int *device);

/* --- unseen.c ---------------------------------------------------------------------- */

enum function_state { FUNCTION_NONE, FUNCTION_QUEUED, FUNCTION_RUNS, FUNCTION_ENDED };

enum { FEW_BEFORE = 2 };
struct unseen_op {
    uint64_t number; // in the order of issue
    int slot;
    uint64_t seq, group;
    int comm; // -1: a host function
    struct judge_call call;
    struct fact fact;
    enum function_state function;
    int function_number, thread; // thread: the one that runs it
    struct judge_at at;
    uint64_t *before; // numbers of those that must end first; most have few
    uint64_t few[FEW_BEFORE];
    uint64_t like; // has the same `before` as that one; 0: its own
    size_t nbefore, before_size;
    bool seen;
};

struct unseen {
    struct unseen_op **at; // by number; some are seen
    size_t n, size, nseen;
    uint64_t next; // number
    struct unseen_slot *slots;
    size_t nslots;
    int *active; // slots that have any
    size_t nactive, active_size;
};

struct unseen_op *unseen_add(struct unseen *u, struct position at, int comm);
void unseen_behind(struct unseen_op *op, uint64_t number);
struct unseen_op *unseen_find(const struct unseen *u,
                              uint64_t number); // NULL: it is seen
size_t unseen_first(const struct unseen *u,
                    uint64_t number); // index of the first from there on
/* The newest of each slot that the clock covers; all calls of a group. */
size_t unseen_covered(const struct unseen *u, const struct clock *clock,
                      const struct unseen_op ***list, size_t *size);
void unseen_forget(struct unseen *u, struct unseen_op *op);
void unseen_forget_comm(struct unseen *u, int comm); // all of its
/* Forgets what the clock covers. */
void unseen_cover(struct unseen *u, const struct clock *known,
                  void (*each)(void *self, const struct unseen_op *op), void *self);
void unseen_free(struct unseen *u);

/* --- calls.c ----------------------------------------------------------------------- */

struct captures {    // calls that were captured
    uint64_t n, all; // all: the same where the same ones were, between the same others
};

struct comm {
    struct comm_facts facts;
    int keeper; // the rank that compares
    enum judge_end how;
    bool left;
    uint64_t ops, collectives, split; // split: the newest one's seq
    uint64_t upto;                    // waits.c's
    struct map pairs;                 // peer and direction: struct pair_count
    // The newest operation or group, and the one before: each begins when the one before
    // it has ended.
    uint64_t group, *newest, *earlier;
    size_t nnewest, newest_size, nearlier, earlier_size;
    // For the order among communicators: the newest collective.
    uint64_t seen, since, newest_site, newest_seq, newest_group, newest_at;
    int thread, newest_slot;
    bool busy;
    // Calls captured since a graph with calls of this communicator was launched last.
    uint64_t captured, captured_site; // how many; the newest
    struct captures captures;         // of collectives
    struct comm *same;                // another rank of the same communicator
};

struct pair_count {
    int peer;
    bool send;
    uint64_t n;
    uint64_t upto; // waits.c's
    struct captures captures;
};
uint64_t pair_key(int peer, bool send);

struct recent { // what a thread told of last: one call, or a group
    uint64_t group;
    bool open;
    struct recent_call {
        bool join;       // has a notice; a call has a fact
        uint64_t number; // of the operation; 0: of none
        union {
            struct fact fact;
            struct notice notice;
        };
    } * at;
    size_t n, size;
};

struct calls {
    struct comm **comms;
    size_t ncomms, comms_size;
    struct map by_id; // struct comm
    struct fact *log;
    struct log_to {
        int rank;
        double since;
    } * log_to;
    size_t nlog, log_size, log_to_size;
    struct comm **busy; // with collectives under way
    size_t nbusy, busy_size;
    struct unseen unseen;
    struct map recent; // by thread
    uint64_t activity; // grows with all that happens
    char *failure;
    uint64_t failed_site;
};

struct calls *calls_of(struct judge *j);
void calls_flush_all(struct judge *j); // what is very new, too
struct comm *comm_of(struct judge *j, int comm);
const struct recent *calls_recent(struct judge *j, int thread);
void calls_thread_gone(struct judge *j, int thread);
struct notice calls_notice(const struct judge_join *join); // NOTICE_JOINS
struct left_pair { // behind the notice of a rank that leaves: what it sent and received
    int32_t peer, send;
    uint64_t n, known;
};

/* --- members.c --------------------------------------------------------------------- */

struct member {
    int world, device; // -1: not known
    bool joined, made, left;
    enum judge_end how;
    struct notice join, end;
    struct left_pair *pairs; // at its end
    size_t npairs;
};

struct member_comm {
    uint64_t id;
    int nranks, njoined, nended;
    bool complete;
    struct member *of; // by rank
};

struct members {
    struct map comms, used, ids; // used: ids of communicators that are gone
    struct map hosts;            // of the world
    double hold;                 // until then something is being compared
    double changed;
    unsigned aborts;
    struct conflict *conflicts; // of joins
    size_t nconflicts, conflicts_size;
};

struct members *members_of(struct judge *j);
struct member_comm *members_comm(struct judge *j, uint64_t id); // NULL: not known
const char *members_host(struct judge *j, int world);
int members_id_maker(struct judge *j, uint64_t id); // -1: nobody that is known

#endif
