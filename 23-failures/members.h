/*
 * members.h: who takes part, and how they send each other a few bytes.
 *
 * NCCL can't carry this: its communicator is what has failed. MPI's messages do it here,
 * in production a key-value store on another machine.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "lesson.h"

#include <unistd.h>

enum { MOST_RANKS = 64 };

/* Tags of messages. Each agreement has one of its own, so that what comes late is not
 * taken for something newer. */
enum { TAG_NEWS = 1, TAG_ROUND, TAG_END = 30000 };

/* Who takes part, by rank in MPI_COMM_WORLD, and which step is the next. */
struct members {
    int step, n, ranks[MOST_RANKS];
    int round;                         // the tag of the next agreement
    bool settled;                      // their communicator has no call in progress
    unsigned long long checked, wrong; // weights, at the end of the program
};

/* All ranks of MPI_COMM_WORLD. */
static inline struct members all_members(int nranks) {
    struct members all = {.n = nranks, .round = TAG_ROUND};
    if (nranks > MOST_RANKS)
        lesson_fail("at most %d ranks", MOST_RANKS);
    for (int i = 0; i < nranks; i++)
        all.ranks[i] = i;
    return all;
}

/* This rank's number in the communicator of the members, or -1. */
static inline int member(const struct members *m, int rank) {
    for (int i = 0; i < m->n; i++)
        if (m->ranks[i] == rank)
            return i;
    return -1;
}

/* MPI_Send might wait for a rank that is lost. MPI_Isend does not; it may read later what
 * it sends, so that is a copy that stays. */
static inline void tell(int to, const void *what, size_t bytes, int tag) {
    MPI_Request sent;
    void *copy = memcpy(lesson_malloc(bytes), what, bytes);
    if (MPI_Isend(copy, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sent) ==
        MPI_SUCCESS)
        MPI_Request_free(&sent); // otherwise MPI knows that the rank is dead
}

/* Takes a message that is there before `end`, and returns who has sent it, or -1.
 * MPI_Recv alone has no deadline, and keeps a core busy. */
static inline int hear(int from, void *what, size_t bytes, int tag, double end) {
    int there;
    MPI_Status status;
    do {
        CHECK_MPI(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status));
    } while (!there && MPI_Wtime() < end && usleep(1000) == 0);
    if (!there)
        return -1;
    CHECK_MPI(MPI_Recv(what, (int)bytes, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE));
    return status.MPI_SOURCE;
}

/* From rank 0, whose own loss is not foreseen. */
static inline void must_hear(void *what, size_t bytes, int tag, double seconds) {
    if (hear(0, what, bytes, tag, MPI_Wtime() + seconds) < 0)
        lesson_fail("rank 0 has said nothing for %.0f s. Without it nobody can decide.",
                    seconds);
}

#endif
