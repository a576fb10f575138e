/*
 * strangers.h: whether the program has threads that have called nothing yet, or means
 * that are not seen.
 */
#ifndef STRANGERS_H
#define STRANGERS_H

#include <stdbool.h>

/* This thread calls something for the first time; it ends. */
void strangers_not_this(void);
void strangers_forget_this(void);
/* MPI has started, or a communicator is there on a GPU: who is there and has called
 * nothing is MPI's, NCCL's or CUDA's. */
void strangers_of_libraries(void);
/* Whether ranks may meet by means that are not seen: shared memory, sockets, files. */
bool strangers_meet(void);
/* judge_outside.strangers */
bool strangers_any(void *self);

#endif
