/*
 * front.h: what the front's files share.
 *
 * The front has the public functions of CUDA, cuBLAS, NCCL and MPI. Each tells the judge
 * what the program does, and calls the function of the same name below: in the CPU build
 * the stand-in's, which is linked behind it (FRONT_LINKED); on GPUs, where the front is
 * loaded before the program's own libraries, the real one.
 *
 * From the ground up, each file calls only those above it in this list:
 *
 *   place.c       the line of a call
 *   enter.c       the way in and out: whose call it is, the judge, what lies below
 *   threads.c     whether the program has threads that have called nothing yet
 *   guard.c       host memory that is touched too early
 *   handles.c     the program's handles, and the judge's numbers for them
 *   registered.c  buffers that are registered with NCCL
 *   answer.c      what a call has in common with the others
 *   trace.c, timeline.c  when all that happened, for the file of NCCL_TIMELINE
 *
 *   neighbours.c  what the processes of one machine share
 *   talk.c        what the ranks' judges tell one another, and the user
 *   mpi_front.c   what an MPI call is given
 *   collectives.c MPI's collective calls, which all ranks make alike
 *   start.c       how the job starts and ends
 *
 *   mpi.c         MPI's functions (most of them made of mpi.list)
 *   requests.c    MPI's requests
 *   types.c       where a message's bytes lie, if its type has holes
 *   synchronize.c the host waits for a stream, or asks
 *   graph.c, cublas.c, nccl.c, driver.c, cuda.c  the others
 */
#ifndef FRONT_H
#define FRONT_H

#include "../judge.h"

#include <mpi.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* --- What lies below ----------------------------------------------------------- */

/* BELOW(cudaMalloc) is the function below; PNCCL(ncclAllReduce) likewise, which NCCL has
 * under a name of its own for this purpose (pncclAllReduce, its profiling interface), and
 * MPI under PMPI_. NULL where the library below is older than the function. */
#ifdef FRONT_LINKED
#define BELOW(name)                             \
    ({                                          \
        extern __typeof__(name) standin_##name; \
        (__typeof__(&(name)))&standin_##name;   \
    })
#define PNCCL(name)                      \
    ({                                   \
        extern __typeof__(name) p##name; \
        (__typeof__(&(name)))&p##name;   \
    })
#else
#define BELOW(name)                    \
    ({                                 \
        static void *found;            \
        if (!found)                    \
            found = front_find(#name); \
        (__typeof__(&(name)))found;    \
    })
#define PNCCL(name)                        \
    ({                                     \
        static void *found;                \
        if (!found)                        \
            found = front_find("p" #name); \
        (__typeof__(&(name)))found;        \
    })
#endif
/* The next definition of a function; NULL: there is none. */
void *front_find(const char *name);

/* --- Entering: enter.c ---------------------------------------------------------- */

/* How deep this thread is in the front, or below it: libraries call each other's public
 * functions, and what they do there is not the program's doing. */
extern __thread int front_depth;
extern bool front_on; // somebody wants to hear of the calls: the checks, or a timeline
extern bool front_checks;   // they are not switched off, and nothing made them give up
extern bool front_saw_cuda; // a call of the program
extern bool front_timed;    // it looks at a clock: what it does may be there to be timed

static inline bool front_passes(void) {
    return front_depth > 0 || !front_on;
}

/* The first lines of a public function: passes on what is not the program's own call, and
 * notes where the call stands. */
#define NOT_THE_PROGRAM (front_passes() || front_theirs(__builtin_return_address(0)))
#define FRONT_PASS(name, ...)                \
    do {                                     \
        if (NOT_THE_PROGRAM)                 \
            return BELOW(name)(__VA_ARGS__); \
        front_saw_cuda = true;               \
    } while (0)
#define AT_HERE \
    const struct judge_at at = {__func__, front_site(__builtin_return_address(0))}

/* Calls what lies below, so that what it calls itself passes through:
 * CALL(BELOW(cudaMalloc), p, n) */
#define CALL(function, ...)                                                        \
    ({                                                                             \
        front_depth++;                                                             \
        __typeof__((function)(__VA_ARGS__)) call_result = (function)(__VA_ARGS__); \
        front_depth--;                                                             \
        call_result;                                                               \
    })

/* Between the two lie the events that are told to the judge. Nothing below is called
 * there. */
struct judge *front_in(void);
struct judge *front_in_as(int thread); // 0: the helper
int front_thread(void);                // this one's number
void front_out(void);
void front_leave(void);               // the same, and leaves pages as they are
bool front_is_inside(void);           // this thread
extern __thread bool front_in_signal; // MPI may be what was interrupted

/* Seconds of a processor that a thread has had, which is there; negative: not known.
 * `name`: its pthread_self(), or 0. */
double front_worked(void *self, uint64_t name);

/* The program's own function is called from below (a host function, a callback): what it
 * calls is the program's again, and it is a thread of its own to the judge. */
struct front_own {
    int depth, thread;
};
struct front_own front_function_begins(void);
void front_function_ends(struct front_own before);

/* The judge of this process. It begins with the settings, and obeys them when they have
 * changed. */
extern struct judge_options front_options;
extern char front_host[JUDGE_HOST]; // the machine's name
void front_begins(const struct judge_outside *outside);
void front_obeys(void);

/* Called if it is set by the next front_out, before it leaves (guard.c). */
extern void (*front_at_out)(struct judge *j);

/* --- start.c --- */
/* Where a communicator is about to be made: the helper thread that lets the judges talk
 * is started. `all_here`: all its ranks are this process's. */
void front_communicates(bool all_here);
/* A function is about to be queued on a stream: it may never end, and somebody has to
 * look. */
void front_has_functions(void);
extern int front_mpi_level; // of threads: what the program was told that it may do
void front_mpi_started(void);
void front_mpi_ends(struct judge_at at); // MPI_Finalize is about to be called below
void front_mpi_kept(struct judge_at at); // it will not be, until the process ends
/* Called if it is set, when MPI_Finalize has been called, before the ranks meet. */
extern void (*front_at_finalize)(void);

/* --- talk.c --- */
/* The checks cannot go on: says so once, and the program goes on without them. */
void front_gives_up(const char *why);
/* A call that all ranks make together has failed: the program is likely to end now, and
 * the judges get a second to compare what the ranks did. */
void front_settles(void);
bool front_has_helper(void); // the judges talk, on all ranks

/* --- place.c --- */
uint64_t front_site(void *return_address);
const void *front_address(uint64_t site);  // in this process; NULL: not known
bool front_site_in_program(uint64_t site); // and not in a library that it has loaded
bool front_theirs(void *return_address);   // a library's below
void front_place(void *self, uint64_t site, char out[JUDGE_PLACE]);
/* Many lines at once, of sites in ascending order; "" where none is known. */
void front_places(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]);
/* The line of the program that has led to the instruction `at`: the first frame there or
 * above that is not of a library, nor of a header (std::fill). */
uint64_t front_program_frame(const char *at, void *const *frames, int n);
/* Whether the line is the program's, not that of a header of C++, CUDA or MPI. */
bool front_is_own(uint64_t site);

/* --- guard.c --- */
void guard_install(void); // or again, if a library has taken its signal
void guard_changed(void *self, const void *allocation, // its uses have changed
                   const struct judge_range *range);
void guard_made(void *start, size_t bytes); // pinned or managed memory
/* Its pages are opened for good: it is about to be given back; others use it unseen (a
 * window of MPI), or its pages have other bytes, too (cudaHostRegister). */
void guard_gone(const void *address);
void guard_forked(void); // in a process that was forked off, which has no judge
/* A call of MPI that has the program's buffers now; NULL: none. */
void guard_mpi_call(const struct judge_at *at);

/* --- graph.c, nccl.c --- */
void graphs_reset(struct judge *j); // cudaDeviceReset
bool group_is_open(void);           // of NCCL's calls, in this thread

/* --- standin --- */
/* Below is the stand-in, and it wants to know when the host waits elsewhere; NULL: GPUs.
 */
extern void standin_host_blocks(int begins) __attribute__((weak));
/* MPI_Finalize there leaves MPI as it is, while a communicator of NCCL needs it. */
extern bool standin_keeps_mpi(void) __attribute__((weak));
/* MPI ends now, whoever has called for it. */
extern void standin_mpi_ends(void) __attribute__((weak));
/* The stand-in may have a modelled clock: MPI's calls bring the times of ranks together.
 * See cpu/src/travel.h. */
extern void standin_mpi_meets(MPI_Comm comm, int way, int root) __attribute__((weak));
extern void standin_mpi_sends(int dest, int tag, MPI_Comm comm) __attribute__((weak));
extern void standin_mpi_receives(int source, int tag, MPI_Comm comm, MPI_Request *request)
    __attribute__((weak));
extern void standin_mpi_begins(MPI_Comm comm, int way, int root, MPI_Request request)
    __attribute__((weak));
extern void standin_mpi_posts(int source, int tag, MPI_Comm comm, MPI_Request request)
    __attribute__((weak));
extern void *standin_mpi_notes(int n, const MPI_Request *requests) __attribute__((weak));
extern void standin_mpi_ended(void *notes, int n, const MPI_Request *requests)
    __attribute__((weak));
extern void standin_mpi_made(MPI_Comm comm) __attribute__((weak));
/* Starts MPI for processes that a launcher has started, if their program leaves it out.
 */
extern void standin_needs_mpi(void) __attribute__((weak));
/* A rank is about to join: before the first one of this process waits for the others. */
extern void standin_announces(const void *id, int rank, int nranks)
    __attribute__((weak));
/* The machine of the modelled clock and the host's time on it; NULL: time is real. */
extern const char *standin_clock(double *time) __attribute__((weak));
/* What is called in between costs no modelled time. */
extern void standin_unpaid(int begins) __attribute__((weak));
/* How large another process's memory is, which is open at this address. */
extern size_t standin_opened_bytes(const void *pointer) __attribute__((weak));
/* Which byte behind the end of memory that the host may write has been written, counted
 * from 1; 0: none. */
extern size_t standin_written_behind(const void *pointer) __attribute__((weak));

#endif
