/*
 * mpi_buffers.h: what an MPI call is given: which buffers it has and until when.
 */
#ifndef MPI_BUFFERS_H
#define MPI_BUFFERS_H

#include "enter.h"
#include "world_ranks.h"

/* The buffers that an MPI call is given. MPI does not look at one whose count is 0, and
 * MPI_IN_PLACE is none. A data type with holes is not looked at. */
void mpi_uses(const struct judge_at *at, const void *buffer, long long count,
              MPI_Datatype type, bool write);
/* A part of the buffer for each rank. */
void mpi_uses_vs(const struct judge_at *at, const void *buffer, const int *counts,
                 const int *displs, MPI_Datatype type, MPI_Comm comm, bool write);
void mpi_win(const struct judge_at *at, const void *buffer);
/* Where MPI finds the bytes of a buffer in device memory: CPU_MPI=cuda-aware. */
#define REACHED(buffer) \
    (OVER_STANDIN ? STANDIN(mpi_buffer)(buffer) : (void *)(uintptr_t)(buffer))
/* Whether MPI takes device memory, or may. */
bool mpi_takes_device_memory(void);

/* After the call, it has given them back, or they are handed over to a request until it
 * is completed. */
void mpi_gives_back(void);
struct mpi_buffer {
    const void *start;
    size_t bytes; // 0: of a type with holes
    bool write;
    int lent; // the judge's number
};
struct mpi_buffer *mpi_hands_over(int *n); // to be freed; NULL: none

/* Conditions and counts of mpi.list, in the communicator `comm`. */
bool mpi_is_root(int root, MPI_Comm comm);
int mpi_size(MPI_Comm comm), mpi_rank(MPI_Comm comm);
int mpi_sum(const int *counts, MPI_Comm comm);
#define IS_ROOT(root) mpi_is_root(root, comm)
#define IS_FIRST (mpi_rank(comm) == 0)
#define EACH(count) ((count)*mpi_size(comm))
#define SUM(counts) mpi_sum(counts, comm)
#define MINE(counts) ((counts)[mpi_rank(comm)])

/* -2: MPI_ANY_SOURCE is any of them, MPI_PROC_NULL is nobody. */
int mpi_peer(int rank);

#endif
