/*
 * faults.h: the options of failures, and what can go wrong with the last rank.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "nonblocking.h"

#include <signal.h>
#include <unistd.h>

enum { FAULTY_STEP = 3, JOIN_STEP = 8 };
enum fault { LEAVE, STOP, EXIT, FAULTS, NO_FAULT = FAULTS };
static const char *const faults[] = {"leave", "stop", "exit", NULL};
enum how { SHRINK, ANEW, HOWS };
static const char *const hows[] = {"shrink", "anew", NULL};

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
    if (fault[LEAVE] + fault[STOP] + fault[EXIT] > 1)
        lesson_misused(argv[0], options, "only one --fault at a time");
    if (how[SHRINK] && how[ANEW])
        lesson_misused(argv[0], options, "only one --how at a time");
    if (asked.join && !fault[LEAVE])
        lesson_misused(argv[0], options, "--join needs --fault leave");
    for (int i = 0; i < FAULTS; i++)
        if (fault[i])
            asked.fault = (enum fault)i;
    if (asked.fault != NO_FAULT && nranks == 1)
        lesson_misused(argv[0], options, "--fault needs two ranks: one has to go on");
    asked.how = how[ANEW] || !HAS_SHRINK ? ANEW : SHRINK;
    asked.join = asked.join && HAS_GROW && asked.fault == LEAVE;
    asked.deadline = (double)ms / 1e3;
    return asked;
}

/* Exits or stops where that is asked for. Returns whether this rank is to leave now. */
static inline bool fault_now(const struct asked *asked, int rank, int step) {
    static bool done;
    if (rank != asked->faulty || step != FAULTY_STEP || done)
        return false;
    done = true;
    if (asked->fault == EXIT)
        _exit(1);
    if (asked->fault == STOP) { // as by a debugger, until a shell wakes it
        char wake[64];
        snprintf(wake, sizeof wake, "(sleep %.1f; kill -CONT %d) &", 5 * asked->deadline,
                 (int)getpid());
        if (system(wake) != 0)
            lesson_fail("no shell that wakes this rank");
        raise(SIGSTOP);
    }
    return asked->fault == LEAVE;
}

#endif
