/*
 * start.h: how the job starts and ends.
 */
#ifndef START_H
#define START_H

#include "judge.h"

#include <nccl.h>

/* Where a communicator is about to be made: the helper thread that lets the judges talk
 * is started. NULL: all its ranks are this process's. */
struct start_join {
    const ncclUniqueId *ids;
    int nids, rank, nranks;
};
void start_communicates(const struct start_join *join);
/* A function is about to be queued on a stream: it may never end, and somebody has to
 * look. */
void start_has_functions(void);
void start_mpi(void);                    // it has started
void start_mpi_ends(struct judge_at at); // MPI_Finalize is about to be called below
void start_job_ends(struct judge_at at); // by this process
void start_mpi_kept(struct judge_at at); // it will not be, until the process ends

#endif
