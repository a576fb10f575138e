/*
 * tasks.h: what tasks.c knows of the program's threads.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stdbool.h>

void tasks_begin(void); // in the first thread
/* A call of this thread, which returns there, is the program's own. */
bool tasks_is_own(void *return_address);
/* MPI has started: who is there and was not made by the program is MPI's. */
void tasks_of_libraries(void);
/* That thread sleeps until another of this process wakes it. */
bool tasks_asleep(int number, double now);
/* It has used the processor for a quarter of the last second at most. */
bool tasks_idle(int number, double now);
/* A debugger looks on. Asked once. */
bool tasks_traced(void);
/* The program has functions that a signal starts, at any time. */
bool tasks_interrupted(void);
/* The program has other threads than this one. */
bool tasks_several(void);
/* It has slept for so many seconds, again and again; or has looked at the same thing all
 * the time. */
bool tasks_naps(int number, double now, double seconds);
/* A thread that has told nothing may wake it. */
bool tasks_others_awake(double now);
/* Whether such a thread of the program is in a call of the system that brings it word
 * from elsewhere (read, recv, accept). */
bool tasks_others_read(void);

#endif
