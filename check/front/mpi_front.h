/*
 * mpi_front.h: what the functions made of mpi.list are made with.
 */
#ifndef MPI_FRONT_H
#define MPI_FRONT_H

#include "front.h"

/* The buffers that an MPI call is given. MPI does not look at one whose count is 0, and
 * MPI_IN_PLACE is none. Of a data type with holes only the first byte is looked at: the
 * holes are not used. */
void mpi_in(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_out(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_invs(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_outvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_inws(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, const MPI_Datatype *types, MPI_Comm comm);
void mpi_outws(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, const MPI_Datatype *types, MPI_Comm comm);
void mpi_win(const struct judge_at *at, const void *buffer);

/* Conditions and counts of mpi.list, in the communicator `comm`. */
bool mpi_is_root(int root, MPI_Comm comm);
int mpi_size(MPI_Comm comm), mpi_rank(MPI_Comm comm);
int mpi_sum(const int *counts, MPI_Comm comm);
#define IS_ROOT(root) mpi_is_root(root, comm)
#define IS_FIRST (mpi_rank(comm) == 0)
#define EACH(count) ((count)*mpi_size(comm))
#define SUM(counts) mpi_sum(counts, comm)
#define MINE(counts) ((counts)[mpi_rank(comm)])

/* Round a call that waits: for all ranks of the communicator, for one, for nobody knows
 * whom. */
void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm);
void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int peer);
void mpi_waits_any(const struct judge_at *at);
void mpi_waited(void);
/* Behind a call that asks. */
void mpi_asked(const struct judge_at *at, int there);

#endif
