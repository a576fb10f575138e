/*
 * agree.h: how the ranks that are left agree on who they are.
 *
 * NCCL can't tell: its communicator is what has failed. Something else must carry the
 * news, here MPI's messages, elsewhere a key-value store on another machine.
 */
#ifndef AGREE_H
#define AGREE_H

#include "lesson.h"

#include <unistd.h>

enum { AGREE_MOST = 64, AGREE_REPORT = 1, AGREE_DECISION, AGREE_ID };

/* Who takes part, by rank in MPI_COMM_WORLD, and which step is the next. */
struct members {
    int step, n, ranks[AGREE_MOST];
};

/* All ranks of MPI_COMM_WORLD. */
LESSON_FUNCTION struct members agree_all(int nranks) {
    struct members all = {.n = nranks};
    if (nranks > AGREE_MOST)
        lesson_fail("at most %d ranks", AGREE_MOST);
    for (int i = 0; i < nranks; i++)
        all.ranks[i] = i;
    return all;
}

/* Which rank of the communicator this is, or -1. */
LESSON_FUNCTION int member(const struct members *m, int rank) {
    for (int i = 0; i < m->n; i++)
        if (m->ranks[i] == rank)
            return i;
    return -1;
}

/* Who of `old` is not in `now`, by rank in the communicator of `old`. Returns how many.
 */
LESSON_FUNCTION int agree_missing(const struct members *old, const struct members *now,
                                  int *missing) {
    int n = 0;
    for (int i = 0; i < old->n; i++)
        if (member(now, old->ranks[i]) < 0)
            missing[n++] = i;
    return n;
}

LESSON_FUNCTION void agree_send(int to, const void *what, size_t bytes) {
    CHECK_MPI(MPI_Send(what, (int)bytes, MPI_BYTE, to, AGREE_ID, MPI_COMM_WORLD));
}

/* From rank 0. The wait may be long, and MPI_Recv would keep a core busy. */
LESSON_FUNCTION void agree_listen(void *what, size_t bytes, int tag) {
    for (int there = 0; !there; usleep(1000))
        CHECK_MPI(MPI_Iprobe(0, tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
    CHECK_MPI(
        MPI_Recv(what, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

LESSON_FUNCTION void agree_receive(void *what, size_t bytes) {
    agree_listen(what, bytes, AGREE_ID);
}

/* From rank 0 to all who take part. MPI_Bcast would need those who are lost, too. */
LESSON_FUNCTION void agree_bcast(const struct members *now, int rank, void *what,
                                 size_t bytes) {
    for (int i = 1; rank == 0 && i < now->n; i++)
        agree_send(now->ranks[i], what, bytes);
    if (rank != 0)
        agree_receive(what, bytes);
}

/* Tells rank 0 which step comes next here, old->step, and returns what it has decided.
 * Whoever has not been heard within `seconds` is lost: two deadlines, because a healthy
 * rank may have begun its step a little later. Rank 0 alone decides, so that all go on
 * with the same list; that it is lost itself is not foreseen. */
LESSON_FUNCTION struct members agree(const struct members *old, int rank,
                                     double seconds) {
    struct members now = {.step = old->step};
    if (rank != 0) {
        CHECK_MPI(MPI_Send(&old->step, 1, MPI_INT, 0, AGREE_REPORT, MPI_COMM_WORLD));
        agree_listen(&now, sizeof now, AGREE_DECISION);
        return now;
    }
    bool heard[AGREE_MOST] = {true};
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
        int there, theirs;
        MPI_Status from;
        CHECK_MPI(
            MPI_Iprobe(MPI_ANY_SOURCE, AGREE_REPORT, MPI_COMM_WORLD, &there, &from));
        if (!there) {
            usleep(1000);
            continue;
        }
        CHECK_MPI(MPI_Recv(&theirs, 1, MPI_INT, from.MPI_SOURCE, AGREE_REPORT,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (member(old, from.MPI_SOURCE) < 0)
            continue; // given up before, and late
        heard[from.MPI_SOURCE] = true;
        now.step =
            theirs < now.step ? theirs : now.step; // all have finished those before
    }
    for (int i = 0; i < old->n; i++)
        if (heard[old->ranks[i]])
            now.ranks[now.n++] = old->ranks[i];
    for (int i = 1; i < now.n; i++)
        CHECK_MPI(MPI_Send(&now, sizeof now, MPI_BYTE, now.ranks[i], AGREE_DECISION,
                           MPI_COMM_WORLD));
    return now;
}

/* Rank 0 answers a rank that it has given up, and that asks in agree after all: it was
 * stopped, wakes up, and learns that it is out. */
LESSON_FUNCTION void agree_late(const struct members *now, int rank, int late) {
    int step;
    if (rank == 0) {
        CHECK_MPI(MPI_Recv(&step, 1, MPI_INT, late, AGREE_REPORT, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
        CHECK_MPI(
            MPI_Send(now, sizeof *now, MPI_BYTE, late, AGREE_DECISION, MPI_COMM_WORLD));
    }
}

/* The verdict of those who are left; lesson_verdict would wait for all. */
LESSON_FUNCTION int agree_verdict(const struct members *now, int rank) {
    unsigned long long sum[2] = {lesson_checks.checked, lesson_checks.wrong}, theirs[2];
    if (rank != 0) // Ssend: it has come before this rank ends
        CHECK_MPI(MPI_Ssend(sum, sizeof sum, MPI_BYTE, 0, AGREE_REPORT, MPI_COMM_WORLD));
    for (int i = 1; rank == 0 && i < now->n; i++) {
        CHECK_MPI(MPI_Recv(theirs, sizeof theirs, MPI_BYTE, now->ranks[i], AGREE_REPORT,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        sum[0] += theirs[0];
        sum[1] += theirs[1];
    }
    const bool right = sum[0] > 0 && sum[1] == 0;
    if (rank == 0)
        printf("%s: %d rank%s left, %llu weights checked, %llu wrong\n",
               right ? "OK" : "FAILED", now->n, now->n == 1 ? "" : "s", sum[0], sum[1]);
    fflush(stdout);
    return right ? 0 : 1;
}

#endif
