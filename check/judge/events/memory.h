/*
 * memory.h: memory that is made, used by the host or by MPI, and freed.
 */
#ifndef EVENTS_MEMORY_H
#define EVENTS_MEMORY_H

#include "events/life.h"

struct judge_range {
    const void *start;
    size_t bytes;
    bool write;
    // The call says that this is the device's: it is wrong if it was freed. Where it may
    // be the host's (false), malloc may have given out again what cudaFree gave back.
    bool device;
};

enum judge_memory_kind {
    JUDGE_DEVICE,      // cudaMalloc and its kin
    JUDGE_POOL,        // cudaMallocAsync
    JUDGE_NCCL_MEMORY, // ncclMemAlloc
    JUDGE_PINNED,      // cudaMallocHost, cudaHostAlloc
    JUDGE_HOST_REGISTERED,
    JUDGE_MANAGED, // cudaMallocManaged
    JUDGE_PEER,    // another process's, through cudaIpcOpenMemHandle
    JUDGE_HANDLE // no memory: what kernels get of NCCL's, a window or device communicator
};
static inline bool judge_on_device(enum judge_memory_kind kind) {
    return kind <= JUDGE_NCCL_MEMORY;
}

struct judge_memory {
    const void *start;
    size_t bytes;
    enum judge_memory_kind kind;
    int device;
    struct judge_at made;
};

/* `stream`: of cudaMallocAsync; -1: of none. */
void judge_memory_made(struct judge *j, const void *start, size_t bytes,
                       enum judge_memory_kind kind, int device, int stream,
                       struct judge_at at);
/* Before it is freed: the host has written the byte so far past its end (1: the next).
 * "Allocates size bytes of host memory" (CUDA Runtime API, cudaMallocHost). */
void judge_memory_overrun(struct judge *j, const void *start, size_t behind,
                          struct judge_at at);
/* By the host (cudaFree: waits for what uses it, so that only a race is wrong), or in
 * `stream` (cudaFreeAsync). */
void judge_memory_freed(struct judge *j, const void *start, int stream,
                        struct judge_at at);
/* What is known of the allocation that has `address`. */
bool judge_memory_find(struct judge *j, const void *address, struct judge_memory *out);
/* Some allocation that cudaDeviceReset takes away; NULL: there is none. */
const void *judge_memory_on(struct judge *j, int device);
/* Bytes that something reads or writes which the judge does not see (an IPC handle was
 * given away, an MPI window, a kernel's argument): never "nobody wrote it". */
void judge_memory_open(struct judge *j, const void *address);
/* A kernel may write it, somewhere: all that is known of it is that it may be written. */
void judge_memory_written(struct judge *j, const void *address);

/* These bytes are to be registered with a communicator, as a window or not. */
void judge_registers(struct judge *j, const void *start, size_t bytes,
                     struct judge_at at);

/* Kernels on `device` may use memory that cudaMalloc made on `peer`, or no more
 * (cudaDeviceEnablePeerAccess, cudaDeviceDisablePeerAccess). */
void judge_peer_access(struct judge *j, int device, int peer, bool on);

/* The host is about to read or write these bytes in `at.call` (MPI_Send, read, …): a race
 * with what is queued; device memory, unless `device_too`. True if it was wrong. */
bool judge_host_uses(struct judge *j, const void *start, size_t bytes, bool write,
                     bool device_too, struct judge_at at);
/* The host has touched an address and was stopped (a page that was closed, or no page).
 * True if the judge had a reason to report, false: it is no business of the judge's, or a
 * warning only. */
bool judge_host_faults(struct judge *j, const void *address, bool write, bool write_known,
                       uint64_t site);
/* Whether the judge has a word for a touch of this address: it is memory that it knows,
 * or that was freed. */
bool judge_host_may_fault(struct judge *j, const void *address);
/* Whether an unseen operation uses this byte, so that the host comes too early. */
bool judge_host_is_early(struct judge *j, const void *address, bool write);
/* MPI has these bytes until the number that is returned is given back, when a request is
 * completed, and reads or writes them meanwhile: an operation that uses them before is
 * wrong. */
int judge_memory_lent(struct judge *j, const void *start, size_t bytes, bool write,
                      struct judge_at at);
void judge_memory_back(struct judge *j, int lent);
/* Calls `each` for the parts of the allocation at `start` that unseen operations use,
 * which may have begun; not for what MPI has, too. */
void judge_memory_in_use(struct judge *j, const void *start,
                         void (*each)(void *self, const void *start, size_t bytes,
                                      bool write),
                         void *self);

#endif
