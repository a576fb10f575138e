/* mpi_time.h: how MPI's calls bring the modelled times of the ranks' hosts together. */
#ifndef CPU_MPI_TIME_H
#define CPU_MPI_TIME_H

#pragma GCC visibility push(default)
#include <mpi.h>

/* For whoever stands in front of the library, and sees the program's calls of MPI. All of
 * them do nothing where no clock is modelled. */
enum { MEET_ALL, MEET_FROM_ROOT, MEET_AT_ROOT };
void standin_mpi_meets(MPI_Comm comm, int way, int root); // before a collective call
void standin_mpi_sends(int dest, int tag, MPI_Comm comm); // before a send
/* Round a call that receives: before it with a new request, after it with the same. */
void standin_mpi_receives(int source, int tag, MPI_Comm comm, MPI_Request *request);
/* Behind calls that return a request: of a collective, of a receive. */
void standin_mpi_begins(MPI_Comm comm, int way, int root, MPI_Request request);
void standin_mpi_posts(int source, int tag, MPI_Comm comm, MPI_Request request);
/* After a call that ends requests, or asks whether they have ended: what they were before
 * it, and what they are now. */
void standin_mpi_ended(const MPI_Request *before, int n, const MPI_Request *now);
void standin_mpi_made(MPI_Comm comm); // after a call that made a communicator
#pragma GCC visibility pop

void mpi_time_open(void); // MPI is there; all ranks of MPI_COMM_WORLD call it
void mpi_time_close(void);

#endif
