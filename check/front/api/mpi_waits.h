/*
 * mpi_waits.h: what the program's MPI calls wait for.
 */
#ifndef MPI_WAITS_H
#define MPI_WAITS_H

#include "mpi_buffers.h"

#include <stdatomic.h>

/* The first line of a function of MPI, where it is the program that calls it. */
#define MPI_HERE AT_HERE

/* Round a call that waits: for all ranks of the communicator, for one, for nobody knows
 * whom; `peer` as for judge_wait_mpi, `whom` NULL: not known. */
void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm, enum judge_way way);
void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int peer,
                   enum judge_way way);
void mpi_waits_any(const struct judge_at *at);
void mpi_waits(const struct judge_at *at, const struct mpi_whom *whom, int peer);
void mpi_waited(void);
/* So many more things go on in MPI beside the calls that wait, requests that are not
 * known to be completed and the like; fewer: are completed. */
extern atomic_llong mpi_more;
void mpi_under_way(int more);

/* After a call that asks. */
void mpi_asked(const struct judge_at *at, int there);

#endif
