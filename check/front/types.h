/*
 * types.h: where the bytes of a message lie, and the neighbours of a communicator.
 */
#ifndef TYPES_H
#define TYPES_H

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
#include <stdbool.h>
#include <stddef.h>

/* Tells of the blocks that `count` elements of the type at `at` consist of; of more than
 * 64 of some, evenly spread. False: it is not known what the type is made of. */
bool types_blocks(const char *at, long long count, MPI_Datatype type,
                  void (*each)(void *self, const char *start, size_t bytes), void *self);

/* The ranks from which a neighbourhood collective receives (`sources`), or to which it
 * sends, in the order of its buffers, MPI_PROC_NULL among them; in memory that is to be
 * freed. 0: the communicator has no topology. */
int types_neighbours(MPI_Comm comm, bool sources, int **out);

#endif
