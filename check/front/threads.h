/*
 * threads.h: whether the program has threads that have called nothing yet.
 */
#ifndef THREADS_H
#define THREADS_H

#include <stdbool.h>

/* This thread calls something for the first time; it ends. */
void threads_begins(void);
void threads_ends(void);
/* MPI has started: who is there and has called nothing is MPI's. */
void threads_of_mpi(void);
/* judge_outside.strangers */
bool threads_strangers(void *self);

#endif
