/*
 * members.h: on rank 0: who joins a communicator, which ranks it has, who has left it.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "ranks/comms.h"

struct member {
    int world, device;                 // -1: not known
    bool joined, made, left, complete; // complete: finalized or revoked before its end
    enum judge_end how;
    struct notice join, end, gives_up; // gives_up: aborts or revokes
    struct pair_count *pairs;          // at its end
    size_t npairs;
};

struct member_comm {
    uint64_t id;
    int nranks, njoined, nended;
    bool complete, given_up; // aborted or revoked by some
    struct member *of;       // by rank
};

struct members {
    struct map comms, used, ids; // used: ids of communicators that are gone
    double hold;                 // until then something is being compared
    double changed;
    struct conflict *conflicts; // of joins
    size_t nconflicts, conflicts_size;
};

void members_free(struct members *members);
struct member_comm *members_comm(struct judge *j, uint64_t id); // NULL: not known
/* How often a member that has left did that; NULL: never. */
const struct pair_count *members_pair(const struct member *one, int peer, int what);
bool members_given_up(struct judge *j, uint64_t id); // a communicator, by some
int members_id_maker(struct judge *j, uint64_t id);  // -1: nobody that is known

// MESSAGE_JOIN
void members_receive(struct judge *j, int from, const void *data, size_t bytes);
void members_look(struct judge *j);

#endif
