/*
 * below.h: the functions that lie below the front: the stand-in's, which is linked after
 * it in the CPU build (FRONT_LINKED), or those of the libraries that are loaded after it.
 */
#ifndef BELOW_H
#define BELOW_H

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BELOW(cudaMalloc) is the function below; PNCCL(ncclAllReduce) likewise, which NCCL's
 * library has under a name of its own for this purpose (pncclAllReduce, its profiling
 * interface), and MPI under PMPI_. NULL where the library is older than the function. */
#ifdef FRONT_LINKED
#define BELOW(name)                             \
    ({                                          \
        extern __typeof__(name) standin_##name; \
        (__typeof__(&(name)))&standin_##name;   \
    })
#define PNCCL(name) BELOW(name)
#else
#define LIES_BELOW(name, text)        \
    ({                                \
        static void *found;           \
        if (!found)                   \
            found = front_find(text); \
        (__typeof__(&(name)))found;   \
    })
#define BELOW(name) LIES_BELOW(name, #name)
#define PNCCL(name) LIES_BELOW(name, "p" #name)
#endif
/* The next definition of a function; NULL: there is none. */
void *front_find(const char *name);

/* The stand-in, where OVER_STANDIN (check/build.mk) says that it is below */

void standin_host_blocks(int begins); // the host waits elsewhere
/* MPI_Finalize leaves MPI as it is, while a communicator of NCCL needs it. */
bool standin_keeps_mpi(void);
void standin_mpi_ends(void); // now, whoever has called for it
/* It may have a modelled clock: MPI's calls bring the times of ranks together. See
 * cpu/src/clock/mpi_time.h. */
void standin_mpi_meets(MPI_Comm comm, int way, int root);
void standin_mpi_sends(int dest, int tag, MPI_Comm comm);
void standin_mpi_receives(int source, int tag, MPI_Comm comm, MPI_Request *request);
void standin_mpi_begins(MPI_Comm comm, int way, int root, MPI_Request request);
void standin_mpi_posts(int source, int tag, MPI_Comm comm, MPI_Request request);
void standin_mpi_ended(const MPI_Request *before, int n, const MPI_Request *now);
void standin_mpi_made(MPI_Comm comm);
/* CPU_MPI=cuda-aware: MPI takes device memory, and finds its bytes there. */
bool standin_cuda_aware(void);
void *standin_mpi_buffer(const void *buffer);
/* Starts MPI for processes that a launcher has started, if their program leaves it out.
 */
void standin_needs_mpi(void);
/* A rank is about to join: before the first one of this process waits for the others.
 * False: NCCL will refuse it. */
bool standin_announces(void *comm, const void *id, int rank, int nranks);
void standin_job_ends(void); // by this process, which has said why
/* The machine of the modelled clock and the host's time on it; NULL: time is real. */
const char *standin_clock(double *time);
void standin_unpaid(int begins); // what is called in between costs no modelled time
/* How large another process's memory is, which is open at this address. */
size_t standin_opened_bytes(const void *pointer);
uint64_t standin_comm_id(const void *comm); // the same on all ranks; 0: not there
size_t standin_window_bytes(const void *comm, const void *window, int peer);
uint64_t standin_arrived(void *); // puts and signals that have come in
/* Which byte past the end of memory that the host may write has been written, counted
 * from 1; 0: none. */
size_t standin_written_behind(const void *pointer);

/* What a kernel does with the pointers among its arguments, of which it returns how many
 * there are; -1: it is no kernel. */
struct standin_kernel {
    const char *name;    // as in the program; stays
    bool elsewhere;      // it also follows pointers that it finds in memory
    struct standin_pointer {
        const void *at;
        bool write, first; // it may be written; its first byte is used, for certain
        bool known;        // device memory, or the host's that a GPU may use
    } pointers[32];
};
int standin_kernel(const void *function, void **arguments, struct standin_kernel *out);

/* STANDIN(host_blocks)(1) calls standin_host_blocks. Where the stand-in comes with a
 * library that the program loads later, the loader would not find it. */
#ifdef FRONT_LINKED
#define STANDIN(name) standin_##name
#else
#define STANDIN(name) BELOW(standin_##name)
#endif

#endif
