/* missing.h: the processes that a launcher has started, of a program that uses no MPI. */
#ifndef CPU_MISSING_H
#define CPU_MISSING_H

/* This one waits in the start of MPI, for all of them. If that lasts, one of those that
 * wait says who is missing. */
void missing_wait_begins(int rank, int nranks);
void missing_wait_ends(void);

#endif
