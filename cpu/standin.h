/*
 * standin.h: what the front of the checks may ask of the stand-in, beside the calls of
 * CUDA, cuBLAS, NCCL and MPI. Both sides include it.
 */
#ifndef CPU_STANDIN_H
#define CPU_STANDIN_H

#pragma GCC visibility push(default)
#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The host is about to wait elsewhere, in MPI say (1), or no longer does (0). In between
 * the thread of last resort does not wait for its turn. */
void standin_host_blocks(int begins);

/* Whether MPI_Finalize leaves MPI as it is, because a communicator of NCCL still needs
 * it. */
bool standin_keeps_mpi(void);
/* MPI is about to end: what the stand-in has of it is given back. */
void standin_mpi_ends(void);
/* Processes are about to meet: starts MPI, if a launcher has started them and the program
 * leaves MPI out. */
void standin_needs_mpi(void);
/* A rank of this process is about to meet others by an id, or as one of `comm`, which
 * grows. False: it cannot, and will be told. */
bool standin_announces(void *comm, const void *id, int rank, int nranks);
/* This process is about to end the job, and has told the user why. */
void standin_job_ends(void);

/* Whether MPI takes device memory (CPU_MPI=cuda-aware), and where the bytes of a buffer
 * are that a call of MPI is given. */
bool standin_cuda_aware(void);
void *standin_mpi_buffer(const void *buffer);

/* The modelled machine's name, and what time it is for the host; NULL: time is real. */
const char *standin_clock(double *time);
/* What this thread calls has been paid for (1), and no longer (0): it costs no modelled
 * time. Its waits and questions leave the host's time as it is, and are answered by what
 * has really happened. */
void standin_unpaid(int begins);
/* How MPI's calls bring the modelled times of the ranks' hosts together. All of them do
 * nothing where no clock is modelled. */
enum { MEET_ALL, MEET_FROM_ROOT, MEET_AT_ROOT };
void standin_mpi_meets(MPI_Comm comm, int way, int root); // before a collective call
void standin_mpi_sends(int dest, int tag, MPI_Comm comm); // before a send
/* Round a call that receives: before it with a new request, after it with the same. */
void standin_mpi_receives(int source, int tag, MPI_Comm comm, MPI_Request *request);
/* After calls that return a request: of a collective, of a receive. */
void standin_mpi_begins(MPI_Comm comm, int way, int root, MPI_Request request);
void standin_mpi_posts(int source, int tag, MPI_Comm comm, MPI_Request request);
/* After a call that ends requests, or asks whether they have ended: what they were before
 * it, and what they are now. */
void standin_mpi_ended(const MPI_Request *before, int n, const MPI_Request *now);
void standin_mpi_made(MPI_Comm comm); // after a call that made a communicator

/* How large another process's memory is, which is open at this address; 0: none is. */
size_t standin_opened_bytes(const void *pointer);
/* Which byte past the end of memory that the host may write has been written, counted
 * from 1; 0: none. */
size_t standin_written_behind(const void *pointer);
/* A number that a communicator has on all its ranks, and how large rank `peer`'s part of
 * a window is; 0: that is not known. */
uint64_t standin_comm_id(const void *comm);
size_t standin_window_bytes(const void *comm, const void *window, int peer);
/* Grows when puts or signals come in, or a kernel gets on. */
uint64_t standin_arrived(void *unused);

/* What a kernel does with the pointers among its arguments, of which it returns how many
 * there are; -1: it is no kernel. */
struct standin_kernel {
    const char *name; // as in the program; stays
    bool elsewhere;   // it also follows pointers that it finds in memory
    bool meets;       // it gets a device communicator
    struct standin_pointer {
        const void *at;
        bool write, first; // it may be written; its first byte is used, for certain
        bool known;        // device memory, or the host's that a GPU may use
    } pointers[32];
};
int standin_kernel(const void *function, void **arguments, struct standin_kernel *out);
/* Windows and device communicators that a kernel gets are told of as well, as if they
 * were read: at their handles' addresses, changed so that no memory can be there. */
static inline const void *standin_handle(const void *handle) {
    return (const void *)((uintptr_t)handle | (uintptr_t)1 << 63);
}
/* That of a device communicator; NULL: it is none. */
const void *standin_device_comm(const void *device_comm);
/* Of the program's addresses kernels may use what lies `standin_reach_size` further on.
 */
extern uint64_t standin_reach_start, standin_reach_size;
#pragma GCC visibility pop

#endif
