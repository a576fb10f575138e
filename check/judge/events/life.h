/*
 * life.h: the judge itself: what it is given, who enters it, how a process ends.
 */
#ifndef EVENTS_LIFE_H
#define EVENTS_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct judge;

/* A call of the program: the function's name (a string that stays), and the line it
 * stands in, as a number that judge_outside.place can put into words and that means the
 * same on all ranks; 0: not known. */
struct judge_at {
    const char *call;
    uint64_t site;
};

enum { JUDGE_PLACE = 256, JUDGE_HOST = 64 };

struct judge_range;

/* What the judge is given. Called with the judge's lock held; none may call the judge. */
struct judge_outside {
    void *self;                // the first argument of each
    double (*now)(void *self); // seconds
    /* Sends to rank `to` of the world (perhaps itself): in order, without waiting, for
     * judge_receive there. */
    void (*send)(void *self, int to, const void *data, size_t bytes);
    /* Prints a report ("race: …") after the words "NCCL CHECK: ". With `end` the job is
     * to end with exit code 1; the function may return, and says nothing more then. `key`
     * is the same on all ranks that find the same at the same place; 0: on none. */
    void (*say)(void *self, const char *text, bool end, uint64_t key);
    /* "broadcast.c:57" */
    void (*place)(void *self, uint64_t site, char out[JUDGE_PLACE]);
    /* The ranks of the world that a call of MPI (as given to judge_wait_mpi) waits for,
     * at most `most` of them into `world`. Returns how many; -1: not known. */
    int (*mpi_ranks)(void *self, const void *whom, int *world, int most);
    /* An operation was queued that uses the pinned or managed memory at `start`; with
     * NULL: the host has learnt that operations have ended. May be NULL: nobody asks.
     * `range` is what it uses. */
    void (*host_memory)(void *self, const void *start, const struct judge_range *range);
    /* Whether the program has threads that have never entered: they may be about to do
     * what others wait for. May be NULL: there are none. */
    bool (*strangers)(void *self);
    /* How many seconds of a processor the thread of this name (judge_thread_name; 0: it
     * has none) has had. Negative, or NULL: nobody knows. */
    double (*worked)(void *self, uint64_t name);
    /* How many puts and signals have come in here. May be NULL: nobody knows. */
    uint64_t (*arrived)(void *self);
    /* A communicator was aborted at this line; 0: returns where another process has done
     * that, 0 if none is known to have. May be NULL: nobody knows. */
    uint64_t (*aborted)(void *self, uint64_t comm, uint64_t site);
};

enum judge_mode { JUDGE_OFF, JUDGE_WARN, JUDGE_ON };

struct judge_options {
    enum judge_mode mode; // JUDGE_WARN: after a report the program goes on where it can
    double timeout; // seconds without progress anywhere until a wait counts as endless,
                    // where nothing else can decide (NCCL_CHECK_TIMEOUT)
    bool kernels;   // operations may exist that nobody told of (real GPUs)
    bool unseen;    // ranks may meet in ways that nobody tells of
};

struct judge *judge_new(const struct judge_outside *outside,
                        const struct judge_options *options);
void judge_free(struct judge *j);
/* MPI has started: this process's rank, how many there are, its machine. Until then it is
 * alone. */
void judge_world(struct judge *j, int rank, int nranks, const char *host);
void judge_set(struct judge *j, const struct judge_options *options);

/* `thread`: a number of the front's choice; 0 for the helper that is not the program's:
 * it may only look, receive, and say that a thread is gone, or what the world is. A
 * thread that never enters is none of the judge's business; one that has entered computes
 * until it waits. */
void judge_enter(struct judge *j, int thread);
void judge_leave(struct judge *j);
void judge_thread_gone(struct judge *j, int thread); // between the two, as all below
/* What judge_outside.worked is asked of it by. */
void judge_thread_name(struct judge *j, uint64_t name);

/* Ten times a second or more, by the front's helper thread: passes on what was recorded,
 * tells rank 0 of waits that last, and on rank 0 looks who can go on. True if something
 * waits, so that the next look should be soon. */
bool judge_look(struct judge *j);
/* Everything has come that will: what does not agree need not wait for more. */
void judge_last_look(struct judge *j);
/* A message of another rank's judge (or of this one's). */
void judge_receive(struct judge *j, int from, const void *data, size_t bytes);

/* MPI_Finalize (the front then waits for all, as a wait of this kind, so that others can
 * be told where this rank is), or the end of the process without it (`at` is the call
 * that was left out, "" if MPI was not there); or this rank ends the job, by `at`:
 * whether others have waited for it is said a moment later. */
enum judge_finish { JUDGE_EXITS, JUDGE_FINALIZES, JUDGE_ENDS_JOB };
void judge_finishes(struct judge *j, enum judge_finish how, struct judge_at at);
/* The process ends: what is still queued, or waits in a group, is lost. */
void judge_exits(struct judge *j);
/* At the very end: "1 device buffer (made at x.c:12), 2 streams (made at …)", "" if
 * nothing is left, and what of it others have aborted; and "3 calls returned errors, the
 * first: …", "" if none. */
void judge_left_behind(struct judge *j, char *out, size_t bytes);
void judge_failures(struct judge *j, char *out, size_t bytes);
/* "cudaMemcpy at x.c:12, of what cudaMalloc made at x.c:9": the first copy to the host of
 * device memory that nothing has written; "" if there was none. On some ranks that may be
 * right: only where all have the same one, one of them was meant to be written. */
void judge_unwritten(struct judge *j, char *out, size_t bytes);
/* These words of all processes of a machine, in lines or in one (JUDGE_CALLS_FAILED), are
 * said by the last of them to end. They are given up. */
enum judge_last_words {
    JUDGE_UNWRITTEN,
    JUDGE_LEFT_BEHIND,
    JUDGE_CALLS_FAILED,
    JUDGE_LAST_WORDS
};
struct text;
void judge_says_last(struct judge *j, enum judge_last_words what, struct text *ranks);
/* Something was reported that let the program go on: it is to end with exit code 1. */
bool judge_fails(const struct judge *j);
/* MPI_Abort: the program itself ends the job, and what it leaves behind is no mistake.
 * Why it does is said as far as it is known. */
void judge_aborts(struct judge *j);

#endif
