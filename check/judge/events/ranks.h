/*
 * ranks.h: communicators, and the calls that several ranks make together.
 */
#ifndef EVENTS_RANKS_H
#define EVENTS_RANKS_H

#include "events/life.h"

enum judge_kind {
    JUDGE_BROADCAST,
    JUDGE_ALL_REDUCE,
    JUDGE_REDUCE,
    JUDGE_ALL_GATHER,
    JUDGE_REDUCE_SCATTER,
    JUDGE_ALL_TO_ALL,
    JUDGE_GATHER,
    JUDGE_SCATTER,
    JUDGE_SPLIT, // ncclCommSplit: a call that all ranks make
    // ncclCommWindowRegister: likewise. "Size may differ across ranks" (NCCL User Guide).
    JUDGE_REGISTER,
    JUDGE_DEVICE_COMM, // ncclDevCommCreate: likewise
    JUDGE_SUSPEND,     // ncclCommSuspend, ncclCommResume: likewise
    JUDGE_RESUME,
    JUDGE_SEND,
    JUDGE_RECV
};

/* ncclCommInitRank and its kin, before it is called: the unique id as a number that is
 * the same on all ranks, the device as a name that is the same in all processes of a
 * machine. */
enum judge_joining {
    JUDGE_INITS,
    JUDGE_SHRINKS, // ncclCommShrink: the id depends on the ranks that are left out
    JUDGE_GROWS    // ncclCommGrow: the old ranks have another id than the new ones
};
struct judge_join {
    uint64_t id;
    int rank, nranks, device;
    char bus_id[32];
    enum judge_joining how;
    struct judge_at at;
};
void judge_joins(struct judge *j, const struct judge_join *join);
/* ncclGetUniqueId has made this one, here. `same`: that of ncclCommGetUniqueId, by which
 * the old ranks join the same communicator; 0: none. */
void judge_id_made(struct judge *j, uint64_t id, uint64_t same, struct judge_at at);
/* It is there. `id` as above; for a split one that judge_split_id gave, for
 * ncclCommInitAll one that is this process's own. `blocks`: calls on it return when they
 * are done (config.blocking). */
int judge_comm_made(struct judge *j, uint64_t id, int rank, int nranks, int device,
                    bool blocks, struct judge_at at);
/* The id of what the `split`-th split of a communicator makes for a color; the same on
 * all ranks. */
uint64_t judge_split_id(struct judge *j, int comm, int color);

enum judge_end {
    JUDGE_FINALIZED,
    JUDGE_DESTROYED,
    JUDGE_RESET, // destroyed, with all else, by cudaDeviceReset
    JUDGE_ABORTED,
    JUDGE_REVOKED
};
/* The program has given a name to the communicator with that id, which is about to
 * be made (ncclConfig_t, commName). */
void judge_comm_named(struct judge *j, uint64_t id, const char *name);
/* Before the call. What is queued on it is completed by finalize (NCCL User Guide,
 * "Finalizing a communicator") and by destroy, not by the other two. */
void judge_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at);
/* Whether calls on it are queued of which the host does not know that they are done. */
bool judge_comm_unfinished(struct judge *j, int comm);
/* ncclCommFinalize is done: all that was queued on it is complete, and the host knows it
 * (NCCL User Guide, ncclCommFinalize). */
void judge_comm_complete(struct judge *j, int comm);
/* A use of a communicator that was destroyed or aborted; the front keeps such handles
 * known. */
void judge_comm_used_after(struct judge *j, int comm, struct judge_at at);

struct judge_call {
    int comm, stream; // stream: -1 for JUDGE_SPLIT to JUDGE_RESUME
    enum judge_kind kind;
    int type;                 // index into the names below
    int redop;                // likewise; JUDGE_PRE_MUL_SUM for one of the program's own
    int root;                 // or peer; -1: none
    size_t count, type_bytes; // JUDGE_REGISTER: count is the size in bytes
    const void *sendbuff, *recvbuff; // NULL where it is not used
    const void *scalar; // on the device, of the program's own reduction: it reads it too
    // Where they lie in a symmetric window, which must be the same place on all ranks;
    // + 1. 0: in none, or a buffer that need not.
    size_t send_offset, recv_offset;
    // Must be the same on all ranks. A byte for each field (ranks/compare.c has their
    // names): its value and 1, or 0.
    uint64_t config;
    int launched; // the event that its launch records on the stream, + 1; 0: none
    // With judge_options.kernels: the judge does not know the buffer, and CUDA does not,
    // either.
    bool send_nowhere, recv_nowhere;
    struct judge_at at;
};
enum { JUDGE_PRE_MUL_SUM = 1000 };
extern const char *const judge_type_names[], *const judge_redop_names[],
                                                 *const judge_kind_names[];

void judge_group_starts(struct judge *j, struct judge_at at);
/* Before ncclGroupEnd is called: with the outermost one the group's calls are queued. */
void judge_group_ends(struct judge *j, struct judge_at at);
/* ncclCommWindowRegister has returned: the window's number, the same on all ranks.
 * `more`: MPI may bring news of other ranks by itself (JUDGE_MORE). */
uint64_t judge_window_made(struct judge *j, int comm, const void *start, size_t bytes,
                           bool more);
/* Before ncclCommWindowDeregister is called. */
void judge_window_gone(struct judge *j, int comm, uint64_t window, struct judge_at at);
/* A signal to another rank, with a put into its part of a window or alone; or a wait for
 * some of its signals. */
struct judge_signal {
    int comm, stream;
    const struct judge_put {
        uint64_t window;
        size_t from, bytes, room; // of the window; room 0: not known
        struct judge_at registered;
    } * put; // NULL: none
    struct judge_at at;
};
/* Before a put is made. True: it would not lie in the window. */
bool judge_put(struct judge *j, const struct judge_signal *signal);
/* The call was made: what it does is queued, or captured. `index`: the signal's number;
 * `waits`: for so many of the peer's, 0: it signals. */
void judge_signals(struct judge *j, struct judge_signal signal, int peer, int index,
                   int waits);
/* False: the communicator was revoked or is suspended, which is named. judge_call asks
 * itself; of a put or a signal, `comm` and `at` are enough, and JUDGE_SEND. */
bool judge_usable(struct judge *j, const struct judge_call *call);
/* Before the call is made. True if something was wrong with its buffers. */
bool judge_call(struct judge *j, const struct judge_call *call);
/* What has returned for the calls that this thread has just told of. `in_progress`
 * (ncclInProgress): they are put into their streams in the background. */
void judge_call_answered(struct judge *j, bool in_progress);

/* The call that this thread has just told of (judge_call, judge_joins, judge_group_ends)
 * returned an error: it has not happened. `text`: what the library says. Also for calls
 * of CUDA (`cuda`). Unless the thread asks what went wrong, a last line at the end of the
 * job names it. */
/* `code`: "ncclInvalidUsage (5)", which a note says at once; NULL: no note is wanted. */
void judge_failed(struct judge *j, bool cuda, const char *code, const char *text,
                  struct judge_at at);
/* The thread makes a call that is not told, since the library will refuse it: that it
 * fails takes back nothing that was told before from the same line. */
void judge_not_told(struct judge *j);
/* The thread has asked what went wrong (cudaGetLastError, ncclGetErrorString, …). */
void judge_looked(struct judge *j);

/* What only the front sees to be wrong with a call at `at`; on a communicator (-1: none).
 */
enum judge_found {
    JUDGE_SHRINKS_ITSELF, // ncclCommShrink by a rank that it leaves out; `other`: none
    JUDGE_NOT_READY, // a communicator that is not there yet (blocking = 0); `other` makes
                     // it
    // Another thread is in a call on the communicator, `other`. "It is not allowed to
    // issue NCCL operations to a single communicator in parallel with multiple threads"
    // (NCCL User Guide, "Thread Safety").
    JUDGE_TWO_THREADS,
    JUDGE_CAPTURE_BROKEN, // by this call, in whatever thread: `other` ends it with an
                          // error
    // It frees memory that is registered with a communicator, or as a window, by `other`.
    // "Always deregister before freeing memory" (NVIDIA/nccl,
    // docs/examples/04_user_buffer_registration).
    JUDGE_REGISTERED_FREED,
    JUDGE_WINDOW_FREED
};
void judge_found(struct judge *j, enum judge_found what, int comm, struct judge_at other,
                 struct judge_at at);

#endif
