/* helper.h: a thread that moves things on when the program's own do not. */
#ifndef CPU_HELPER_H
#define CPU_HELPER_H

#include "base/base.h"

/* So many things more (or fewer) wait to be done: `look`, called with the lock held, does
 * what can be done and says whether that was anything. */
void helper_work(int change, bool (*look)(void));
/* The same for what other ranks may ask for, and need not: it is looked at less often. */
void helper_duty(int change, bool (*look)(void));
void helper_looked(void); // the program has looked by itself
/* Whether the thread may run at all: MPI must allow calls from several threads. */
void helper_allow(bool allowed);

/* For whoever stands in front of the library: the host is about to wait elsewhere, in MPI
 * say (1), or no longer does (0). In between the thread does not wait for its turn. */
#pragma GCC visibility push(default)
void standin_host_blocks(int begins);
/* Whether MPI_Finalize leaves MPI as it is, because a communicator of NCCL still needs
 * it. */
bool standin_keeps_mpi(void);
/* MPI is about to end: what this library has of it is given back. */
void standin_mpi_ends(void);
/* Processes are about to meet: starts MPI, if a launcher has started them and the program
 * leaves MPI out. */
void standin_needs_mpi(void);
/* A rank of this process is about to meet others by an id, as meet_announce(). Those of a
 * communicator that grows were told the id. False: it cannot, and will be told. */
bool standin_announces(void *comm, const void *id, int rank, int nranks);
/* The job is about to be ended, and the user has been told why. */
void standin_job_ends(void);
#pragma GCC visibility pop

#endif
