/*
 * mpi_requests.h: MPI's requests.
 */
#ifndef MPI_REQUESTS_H
#define MPI_REQUESTS_H

#include "enter.h"

/* The functions that complete a request. */
#define MPI_COMPLETING(each)                                                       \
    each(Wait) each(Waitall) each(Waitany) each(Waitsome) each(Test) each(Testall) \
        each(Testany) each(Testsome) each(Request_free)
typedef void (*mpi_function)(void);
/* What the program's calls of these come to: it may have functions of its own, which call
 * PMPI's. MPI starts. */
void requests_called(const mpi_function *functions);

/* A request is made, and has the buffers of the call. */
void mpi_opens(const struct judge_at *at, MPI_Request request, MPI_Comm comm, int peer);

#endif
