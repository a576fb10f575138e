/* job.h: the processes that MPI connects. */
#ifndef CPU_JOB_H
#define CPU_JOB_H

#include "base/base.h"

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

extern int job_rank, job_size; // this process among all, and how many there are

int job_open(MPI_Comm all);     // all ranks of it call this; returns MPI's error
uint64_t job_number(void);      // that all processes of the job share
int job_find(uint64_t process); // where base_process() is that; -1: not in this job
bool job_same_host(int rank);
bool job_share_host(int a, int b);

#endif
