/*
 * agree.h: how the ranks that are left agree on who they are.
 *
 * NCCL can't tell: its communicator is what has failed. Something else must carry the
 * news, here MPI's messages, elsewhere a key-value store on another machine.
 */
#ifndef AGREE_H
#define AGREE_H

#include "lesson.h"

#include <signal.h>
#include <unistd.h>

enum { AGREE_MOST = 64 };

/* Tags of messages. Each round of agree has one of its own, so that what comes late is
 * not taken for something newer. */
enum { AGREE_ID = 1, AGREE_SUM, AGREE_ROUND, AGREE_END = 30000 };

/* Who takes part, by rank in MPI_COMM_WORLD, and which step is the next. */
struct members {
    int step, n, ranks[AGREE_MOST];
    int round;    // the tag of the next agree
    bool settled; // their communicator, on all of them; ncclCommShrink wants that
};

/* All ranks of MPI_COMM_WORLD. */
static inline struct members agree_all(int nranks) {
    struct members all = {.n = nranks, .round = AGREE_ROUND};
    if (nranks > AGREE_MOST)
        lesson_fail("at most %d ranks", AGREE_MOST);
    for (int i = 0; i < nranks; i++)
        all.ranks[i] = i;
    return all;
}

/* Which rank of the communicator this is, or -1. */
static inline int member(const struct members *m, int rank) {
    for (int i = 0; i < m->n; i++)
        if (m->ranks[i] == rank)
            return i;
    return -1;
}

/* Who of `old` is not in `now`, by rank in the communicator of `old`. Returns how many.
 */
static inline int agree_missing(const struct members *old, const struct members *now,
                                int *missing) {
    int n = 0;
    for (int i = 0; i < old->n; i++)
        if (member(now, old->ranks[i]) < 0)
            missing[n++] = i;
    return n;
}

/* MPI_Send might wait for a rank that is lost. MPI_Isend does not; it may read later what
 * it sends, so that is a copy that stays. */
static inline void agree_send(int to, const void *what, size_t bytes, int tag) {
    MPI_Request sent;
    void *copy = memcpy(lesson_malloc(bytes), what, bytes);
    if (MPI_Isend(copy, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sent) ==
        MPI_SUCCESS)
        MPI_Request_free(&sent); // otherwise MPI knows that the rank is dead
}

/* Whether there is a message, now or before `end`. MPI_Recv would keep a core busy. */
static inline bool agree_heard(int from, int tag, double end, MPI_Status *status) {
    int there;
    do {
        CHECK_MPI(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, status));
    } while (!there && MPI_Wtime() < end && usleep(1000) == 0);
    return there;
}

/* From rank 0, whose own loss is not foreseen. */
static inline void agree_listen(void *what, size_t bytes, int tag, double seconds) {
    if (!agree_heard(0, tag, MPI_Wtime() + seconds, MPI_STATUS_IGNORE))
        lesson_fail("rank 0 has said nothing for %.0f s. Without it nobody can decide.",
                    seconds);
    CHECK_MPI(
        MPI_Recv(what, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* A new rank waits here until the others are at its step. */
static inline void agree_receive(void *what, size_t bytes) {
    agree_listen(what, bytes, AGREE_ID, 300);
}

/* From rank 0 to all who take part. MPI_Bcast would need those who are lost, too. */
static inline void agree_bcast(const struct members *now, int rank, void *what,
                               size_t bytes) {
    for (int i = 1; rank == 0 && i < now->n; i++)
        agree_send(now->ranks[i], what, bytes, AGREE_ID);
    if (rank != 0)
        agree_receive(what, bytes);
}

/* Tells rank 0 which step comes next here, old->step, and returns what it has decided.
 * Whoever has not been heard within `seconds` is lost: two deadlines, because a healthy
 * rank may have begun its step a little later. Rank 0 alone decides, so that all go on
 * with the same list. The lost ranks are told, too: one may wake up, and learns it. */
static inline struct members agree(const struct members *old, int rank, double seconds) {
    struct members now = *old, theirs;
    if (rank != 0) {
        agree_send(0, old, sizeof *old, old->round);
        agree_listen(&now, sizeof now, old->round, 60 + 5 * seconds);
        return now;
    }
    bool heard[AGREE_MOST] = {true};
    const double end = MPI_Wtime() + seconds;
    MPI_Status from;
    int n = 1;
    for (; n < old->n && agree_heard(MPI_ANY_SOURCE, old->round, end, &from); n++) {
        CHECK_MPI(MPI_Recv(&theirs, sizeof theirs, MPI_BYTE, from.MPI_SOURCE, old->round,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        heard[from.MPI_SOURCE] = true;
        if (theirs.step < now.step)
            now.step = theirs.step; // all have finished those before
        now.settled = now.settled && theirs.settled;
    }
    now.n = 0;
    for (int i = 0; i < old->n; i++)
        if (heard[old->ranks[i]])
            now.ranks[now.n++] = old->ranks[i];
    now.round++;
    for (int i = 1; i < old->n; i++)
        agree_send(old->ranks[i], &now, sizeof now, old->round);
    return now;
}

static inline void agree_too_long(int signal) {
    static const char why[] =
        "A rank was lost after its last step: given up after 60 s.\n";
    (void)signal;
    const ssize_t written = write(STDERR_FILENO, why, sizeof why - 1);
    (void)written;
    _exit(1);
}

/* Which ranks come to the end of the program within `seconds`, lost ones, too. What comes
 * after it has 60 s: no call of MPI has a time limit, and MPI_Finalize waits for all. */
static inline struct members agree_end(int nranks, int rank, double seconds) {
    struct members all = agree_all(nranks);
    all.round = AGREE_END;
    all = agree(&all, rank, seconds);
    signal(SIGALRM, agree_too_long);
    alarm(60);
    return all;
}

/* The verdict of those who have come. MPI's collectives in lesson_verdict would wait for
 * a rank that is gone. */
static inline int agree_verdict(const struct members *there, int rank, int nranks) {
    if (there->n == nranks)
        return lesson_verdict("weight");
    unsigned long long sum[2] = {lesson_checks.checked, lesson_checks.wrong}, theirs[2];
    if (member(there, rank) < 0) // come too late
        return 1;
    if (rank != 0)
        agree_send(0, sum, sizeof sum, AGREE_SUM);
    for (int i = 1; rank == 0 && i < there->n; i++) {
        CHECK_MPI(MPI_Recv(theirs, sizeof theirs, MPI_BYTE, there->ranks[i], AGREE_SUM,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        sum[0] += theirs[0];
        sum[1] += theirs[1];
    }
    const bool right = sum[0] > 0 && sum[1] == 0;
    if (rank == 0)
        printf("%s: %d rank%s left, %llu weights checked, %llu wrong\n",
               right ? "OK" : "FAILED", there->n, there->n == 1 ? "" : "s", sum[0],
               sum[1]);
    fflush(stdout);
    int exit_code = right ? 0 : 1; // rank 0's: it has printed before anybody ends
    agree_bcast(there, rank, &exit_code, sizeof exit_code);
    return exit_code;
}

#endif
