/*
 * faults.h: the options of failures, and what can go wrong with the last rank.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "lesson.h"
#include "versions.h"

#include <signal.h>
#include <unistd.h>

enum { FAULTY_STEP = 3, JOIN_STEP = 8 };
enum fault { LEAVE, STOP, EXIT, UNSURE, FAULTS, NO_FAULT = FAULTS };
static const char *const faults[] = {"leave", "stop", "exit", "unsure", NULL};
enum how { SHRINK, REVOKE, ANEW, HOWS };
static const char *const hows[] = {"shrink", "revoke", "anew", NULL};

struct asked {
    int faulty;       // the rank that has the fault: the last one
    enum fault fault; // what it does
    enum how how;     // how the others go on
    bool join;        // it joins again
    double deadline;  // seconds that a step may take
};

static inline struct asked fault_options(int argc, char **argv, int nranks) {
    bool fault[FAULTS] = {0}, how[HOWS] = {0};
    size_t ms = 0;
    struct asked asked = {.faulty = nranks - 1, .fault = NO_FAULT};
    const struct lesson_option options[] = {
        {"--fault", "NAME", "what the last rank does in step 3 (default: its work):",
         .names = faults, .chosen = fault},
        {"--how", "NAME", "recovery (default: shrink):", .names = hows, .chosen = how},
        {"--join", NULL, "after --fault leave: joins again in step 8",
         .flag = &asked.join},
        {"--deadline", "MS", "milliseconds that a step may take", .number = &ms,
         .usual = 2000, .least = 1},
        {0}};
    lesson_options(argc, argv, options);
    if (fault[LEAVE] + fault[STOP] + fault[EXIT] + fault[UNSURE] > 1)
        lesson_misused(argv[0], options, "only one --fault at a time");
    if (how[SHRINK] + how[REVOKE] + how[ANEW] > 1)
        lesson_misused(argv[0], options, "only one --how at a time");
    if (asked.join && !fault[LEAVE])
        lesson_misused(argv[0], options, "--join needs --fault leave");
    for (int i = 0; i < FAULTS; i++)
        if (fault[i])
            asked.fault = (enum fault)i;
    if (asked.fault != NO_FAULT && nranks == 1)
        lesson_misused(argv[0], options, "--fault needs two ranks: one has to go on");
    asked.how = how[ANEW] || !HAS_SHRINK    ? ANEW
                : how[REVOKE] && HAS_REVOKE ? REVOKE
                                            : SHRINK;
    asked.join = asked.join && HAS_GROW && asked.fault == LEAVE;
    asked.deadline = (double)ms / 1e3;
    return asked;
}

/* Stopped, as by a debugger, until somebody wakes it: here a shell. */
static inline void fault_stop(double seconds) {
    char wake[64];
    snprintf(wake, sizeof wake, "(sleep %.1f; kill -CONT %d) &", seconds, (int)getpid());
    if (system(wake) != 0)
        lesson_fail("no shell that wakes this rank");
    raise(SIGSTOP);
}

/* Exits or stops where that is asked for. Returns what else is to go wrong in this step:
 * LEAVE, UNSURE (once: the rank does the step, and takes it for failed) or NO_FAULT. */
static inline enum fault fault_now(const struct asked *asked, int rank, int step) {
    static bool done;
    if (rank != asked->faulty || step != FAULTY_STEP || done)
        return NO_FAULT;
    done = true;
    if (asked->fault == EXIT)
        _exit(1);
    if (asked->fault == STOP)
        fault_stop(5 * asked->deadline);
    return asked->fault;
}

#endif
