/*
 * mpi_front.h: what the functions made of mpi.list are made with.
 */
#ifndef MPI_FRONT_H
#define MPI_FRONT_H

#include "front.h"

/* --- mpi_front.c --- */

/* The buffers that an MPI call is given. MPI does not look at one whose count is 0, and
 * MPI_IN_PLACE is none. A data type with holes is not looked at. */
void mpi_in(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_out(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_invs(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_outvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_win(const struct judge_at *at, const void *buffer);
/* A persistent request is made for them. */
void mpi_will_have(const void *buffer, int count, MPI_Datatype type, bool write);

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

/* Whom a call waits for: ranks of communicators, or of windows. */
enum { MPI_WHOM = 64 };
struct mpi_whom {
    int n;
    struct mpi_of {
        MPI_Comm comm;
        MPI_Group group; // where `grouped`
        bool grouped;
        int peer; // a rank of it; JUDGE_ALL: all, JUDGE_ONE_OF: any of them
    } of[MPI_WHOM];
};
/* -2: MPI_ANY_SOURCE is any of them, MPI_PROC_NULL is nobody. */
int mpi_peer(int rank);
/* judge_outside.mpi_ranks; `whom`: struct mpi_whom */
int mpi_world_ranks(void *self, const void *whom, int *out, int most);

/* --- mpi.c --- */

/* The first line of a function of MPI, where it is the program that calls it. */
#define MPI_HERE AT_HERE

/* Round a call that waits: for all ranks of the communicator, for one, for nobody knows
 * whom; for all of a window; `peer` as for judge_wait_mpi, `whom` NULL: not known. */
void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm, enum judge_way way);
void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int peer,
                   enum judge_way way);
void mpi_waits_any(const struct judge_at *at);
void mpi_waits_fence(const struct judge_at *at, MPI_Win win, int assertion);
void mpi_waits(const struct judge_at *at, const struct mpi_whom *whom, int peer);
void mpi_waited(void);
/* So many more things go on in MPI beside the calls that wait; fewer: are completed. */
void mpi_under_way(int more);

/* Behind a call that asks. */
void mpi_asked(const struct judge_at *at, int there);

/* The functions that complete a request, and whether the program's calls come to these:
 * it may have its own. */
#define MPI_COMPLETING(each)                                                       \
    each(Wait) each(Waitall) each(Waitany) each(Waitsome) each(Test) each(Testall) \
        each(Testany) each(Testsome) each(Request_free)
typedef void (*mpi_function)(void);
bool mpi_calls_come_to(const mpi_function *functions);

/* --- requests.c --- */

/* A request is made, and has the buffers of the call. */
void mpi_opens(const struct judge_at *at, MPI_Request request, MPI_Comm comm, int peer,
               bool persistent);

#endif
