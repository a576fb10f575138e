/*
 * mpi_front.h: what the functions made of mpi.list are made with.
 */
#ifndef MPI_FRONT_H
#define MPI_FRONT_H

#include "front.h"

/* --- mpi_front.c --- */

/* The buffers that an MPI call is given. MPI does not look at one whose count is 0, and
 * MPI_IN_PLACE is none. Of a data type with holes only the first byte is looked at: the
 * holes are not used. */
void mpi_in(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_out(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type);
void mpi_invs(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_outvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_apart(const struct judge_at *at, const void *sent, const void *buffer,
               const int *counts, const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_inws(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, const MPI_Datatype *types, MPI_Comm comm);
void mpi_outws(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, const MPI_Datatype *types, MPI_Comm comm);
void mpi_inns(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type,
              MPI_Comm comm);
void mpi_outns(const struct judge_at *at, const void *buffer, int count,
               MPI_Datatype type, MPI_Comm comm);
void mpi_innvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_outnvs(const struct judge_at *at, const void *buffer, const int *counts,
                const int *displs, MPI_Datatype type, MPI_Comm comm);
void mpi_win(const struct judge_at *at, const void *buffer);
/* What a call that goes on sends, so that it can be seen whether the program changes it
 * meanwhile: its first bytes. */
struct mpi_sent {
    const void *start;
    size_t bytes;  // 0: not known
    uint64_t hash; // of them
};
void mpi_keep_sent(struct mpi_sent *sent, const void *buffer, int count,
                   MPI_Datatype type);
bool mpi_sent_changed(const struct mpi_sent *sent);

/* A persistent request is made for them. */
void mpi_will_have(const void *buffer, int count, MPI_Datatype type, bool write);

/* Behind the call, it has given them back, or they are handed over: to a request or a
 * window, until it is completed. */
void mpi_gives_back(void);
struct mpi_buffer {
    const void *start;
    size_t used, bytes; // of a type with holes the first byte; all that lies between
    bool write;
    bool guarded; // may be pinned or managed
    int lent;     // the judge's number
};
void mpi_hold(struct judge *j, const struct mpi_buffer *buffer);
void mpi_let_go(struct judge *j, const struct mpi_buffer *buffer);
struct mpi_buffer *mpi_hands_over(int *n); // to be freed; NULL: none
bool mpi_overlap(const char *start, size_t bytes, const char *other, size_t its_bytes);

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

/* --- collectives.c --- */

/* MPI has started. */
void collectives_begin(void);
/* Before a collective call on `comm`, and behind it. `root`, `reduction` (a number that
 * mpi_reduction gives): -1 where it has none. `data`: what all ranks give alike. */
struct mpi_data { // as in judge_mpi_collective
    uint64_t bytes;
    int type;
};
#define MPI_NOT_ALIKE ((struct mpi_data){JUDGE_NOT_ALIKE, -1})
void mpi_collective(const struct judge_at *at, MPI_Comm comm, int root, int reduction,
                    struct mpi_data data);
/* Behind mpi_collective, where each rank gives or gets another count: `counts` of all
 * ranks, which `root` gives (scatters) or takes; -1: every rank knows them. `count`: this
 * rank's own; -1: in place. */
void mpi_parts(int root, bool scatters, const int *counts, MPI_Datatype type, int count,
               MPI_Datatype own);
void mpi_collective_was(int result); // behind it
/* The call succeeded, and made a communicator. */
void mpi_communicator(MPI_Comm made);
struct mpi_data mpi_data(long long count, MPI_Datatype type);
int mpi_reduction(MPI_Op op);

/* --- mpi.c --- */

/* The first line of a function of MPI, where it is the program that calls it. */
void mpi_enters(const struct judge_at *at);
/* What it reads and writes comes. `frame`: its own, on the stack. */
void mpi_begins(const char *frame, const struct judge_at *at);
/* What requests.c has to say of that; NULL: nothing. */
extern void (*mpi_stack_is)(const char *frame, const struct judge_at *at);
const void *mpi_one_buffer(void); // that has come since then; NULL: none
#define MPI_HERE                                 \
    AT_HERE;                                     \
    mpi_begins(__builtin_frame_address(0), &at); \
    mpi_enters(&at)

/* Round a call that waits: for all ranks of the communicator, for one, for nobody knows
 * whom; for all of a window; `peer` as for judge_wait_mpi, `whom` NULL: not known. */
void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm, int root,
                   enum judge_way way);
void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int peer,
                   enum judge_way way);
void mpi_waits_any(const struct judge_at *at);
void mpi_waits_fence(const struct judge_at *at, MPI_Win win, int assertion);
void mpi_waits(const struct judge_at *at, const struct mpi_whom *whom, int peer);
void mpi_waited(void);
/* So many more things go on in MPI beside the calls that wait; fewer: are completed. */
void mpi_under_way(int more);

/* Round a call that does not wait: others may hear of it. */
void mpi_speaks(void);
void mpi_spoke(void); // behind the call
/* What is in a window, and in memory that processes share, others hear unseen. */
void mpi_window(void);

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
void mpi_opens_at(const struct judge_at *at, MPI_Request request, MPI_Comm comm, int peer,
                  bool persistent, const char *frame);
#define mpi_opens(at, request, comm, peer, persistent) \
    mpi_opens_at(at, request, comm, peer, persistent, __builtin_frame_address(0))
/* The call has its buffers until the window is waited for, or freed, or the request is
 * completed (MPI_REQUEST_NULL: it has none): behind that. */
void mpi_window_has(const struct judge_at *at, MPI_Win win, MPI_Request request);
void mpi_window_done(MPI_Win win);
/* It sends these. */
void mpi_sends(MPI_Request request, const void *buffer, int count, MPI_Datatype type);

#endif
