/*
 * world_ranks.h: whom a call of MPI waits for, by ranks of the world.
 */
#ifndef WORLD_RANKS_H
#define WORLD_RANKS_H

#include <mpi.h>
#include <stdbool.h>

/* Whom a call waits for: ranks of communicators. */
enum { MPI_WHOM = 64 };
struct mpi_whom {
    int n;
    struct mpi_of {
        MPI_Comm comm;
        int peer; // a rank of it; JUDGE_ALL: all, JUDGE_ONE_OF: any of them
    } of[MPI_WHOM];
};
bool mpi_is_inter(MPI_Comm comm); // an intercommunicator
/* judge_outside.mpi_ranks; `whom`: struct mpi_whom */
int mpi_world_ranks(void *self, const void *whom, int *out, int most);

#endif
