/* hosts.h: which ranks share a host. */
#ifndef CPU_HOSTS_H
#define CPU_HOSTS_H

#include "base/base.h"

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

const char *hosts_name(void); // of this process's host
/* The ranks of `comm` that are on this rank's host, in the order of their keys; all ranks
 * of `comm` call it. */
int hosts_split(MPI_Comm comm, int key, MPI_Info info, MPI_Comm *out);
extern bool hosts_told; // CPU_HOSTS is set
/* MPI has started: all ranks of MPI_COMM_WORLD call it. */
void hosts_find(void);

#endif
