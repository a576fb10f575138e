/*
 * faults.h: what can go wrong with the last rank in failures.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "lesson.h"

#include <signal.h>
#include <unistd.h>

enum { FAULTY_STEP = 3 };
enum fault { LEAVE, STOP, EXIT, UNSURE, FAULTS };
static const char *const faults[] = {"leave", "stop", "exit", "unsure", NULL};

/* Stopped, as by a debugger, until somebody wakes it: here a shell. */
LESSON_FUNCTION void fault_stop(double seconds) {
    char wake[64];
    snprintf(wake, sizeof wake, "(sleep %.1f; kill -CONT %d) &", seconds, (int)getpid());
    if (system(wake) != 0)
        lesson_fail("no shell that wakes this rank");
    raise(SIGSTOP);
}

#endif
