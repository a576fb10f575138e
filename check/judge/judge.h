/*
 * judge.h: what a program does with CUDA, NCCL and MPI, told as events; and what is wrong
 * with it.
 *
 * The judge knows calls and waits. It moves no data, and knows neither CUDA, MPI nor
 * time: all that it needs of the world is given to it (struct judge_outside). So it
 * stands before the stand-in and before the real libraries alike, and a test can play the
 * events of eight ranks to eight judges in one process.
 *
 * Every event lies between judge_enter, which takes the judge's lock and says which
 * thread acts, and judge_leave. No function blocks. What is wrong is said through
 * judge_outside.say.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct judge;

/* A call of the program: the function's name (a string that stays), and the line it
 * stands in, as a number that judge_outside.place can put into words and that means the
 * same on all ranks; 0: not known. */
struct judge_at {
    const char *call;
    uint64_t site;
};

enum { JUDGE_PLACE = 256, JUDGE_HOST = 64 };

struct judge_range;

/* What the judge is given. Called with the judge's lock held; none may call the judge. */
struct judge_outside {
    void *self;                // the first argument of each
    double (*now)(void *self); // seconds
    /* Sends to rank `to` of the world (perhaps itself): in order, without waiting, for
     * judge_receive there. */
    void (*send)(void *self, int to, const void *data, size_t bytes);
    /* Prints a report ("race: …") after the words "NCCL CHECK: ". With `end` the job is
     * to end with exit code 1; the function may return, and says nothing more then. `key`
     * is the same on all ranks that find the same at the same place; 0: on none. */
    void (*say)(void *self, const char *text, bool end, uint64_t key);
    /* "broadcast.c:57" */
    void (*place)(void *self, uint64_t site, char out[JUDGE_PLACE]);
    /* The ranks of the world that a call of MPI (as given to judge_wait_mpi) waits for,
     * at most `most` of them into `world`. Returns how many; -1: not known. */
    int (*mpi_ranks)(void *self, const void *whom, int *world, int most);
    /* An operation was queued that uses the pinned or managed memory at `start`; with
     * NULL: the host has learnt that operations have ended. May be NULL: nobody asks.
     * `range` is what it uses. */
    void (*host_memory)(void *self, const void *start, const struct judge_range *range);
    /* Whether the program has threads that have never entered: they may be about to do
     * what others wait for. May be NULL: there are none. */
    bool (*strangers)(void *self);
    /* How many seconds of a processor the thread of this name (judge_thread_name; 0: it
     * has none) has had. Negative, or NULL: nobody knows. */
    double (*worked)(void *self, uint64_t name);
    /* How many puts and signals have come in here. May be NULL: nobody knows. */
    uint64_t (*arrived)(void *self);
    /* A communicator was aborted at this line; 0: returns where another process has done
     * that, 0 if none is known to have. May be NULL: nobody knows. */
    uint64_t (*aborted)(void *self, uint64_t comm, uint64_t site);
};

enum judge_mode { JUDGE_OFF, JUDGE_WARN, JUDGE_ON };

struct judge_options {
    enum judge_mode mode; // JUDGE_WARN: after a report the program goes on where it can
    double timeout; // seconds without progress anywhere until a wait counts as endless,
                    // where nothing else can decide (NCCL_CHECK_TIMEOUT)
    bool kernels;   // operations may exist that nobody told of (real GPUs)
    bool unseen;    // ranks may meet in ways that nobody tells of
};

struct judge *judge_new(const struct judge_outside *outside,
                        const struct judge_options *options);
void judge_free(struct judge *j);
/* MPI has started: this process's rank, how many there are, its machine. Until then it is
 * alone. */
void judge_world(struct judge *j, int rank, int nranks, const char *host);
void judge_set(struct judge *j, const struct judge_options *options);

/* `thread`: a number of the front's choice; 0 for the helper that is not the program's:
 * it may only look, receive, and say that a thread is gone, or what the world is. A
 * thread that never enters is none of the judge's business; one that has entered computes
 * until it waits. */
void judge_enter(struct judge *j, int thread);
void judge_leave(struct judge *j);
void judge_thread_gone(struct judge *j, int thread); // between the two, as all below
/* What judge_outside.worked is asked of it by. */
void judge_thread_name(struct judge *j, uint64_t name);

/* Ten times a second or more, by the front's helper thread: passes on what was recorded,
 * tells rank 0 of waits that last, and on rank 0 looks who can go on. True if something
 * waits, so that the next look should be soon. */
bool judge_look(struct judge *j);
/* Everything has come that will: what does not agree need not wait for more. */
void judge_last_look(struct judge *j);
/* A message of another rank's judge (or of this one's). */
void judge_receive(struct judge *j, int from, const void *data, size_t bytes);

enum judge_memory_kind {
    JUDGE_DEVICE,      // cudaMalloc and its kin
    JUDGE_POOL,        // cudaMallocAsync
    JUDGE_NCCL_MEMORY, // ncclMemAlloc
    JUDGE_PINNED,      // cudaMallocHost, cudaHostAlloc
    JUDGE_HOST_REGISTERED,
    JUDGE_MANAGED, // cudaMallocManaged
    JUDGE_PEER     // another process's, through cudaIpcOpenMemHandle
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

/* These bytes are to be registered with a communicator, as a window or not. */
void judge_registers(struct judge *j, const void *start, size_t bytes,
                     struct judge_at at);

/* Kernels on `device` may use memory that cudaMalloc made on `peer`, or no more
 * (cudaDeviceEnablePeerAccess, cudaDeviceDisablePeerAccess). */
void judge_peer_access(struct judge *j, int device, int peer, bool on);

/* Before judge_wait_mpi: it is the collective call of that number among those that all
 * processes make together, from 1. */
void judge_meets(struct judge *j, uint64_t number);

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

/* How a stream takes part in the default stream's order (CUDA Runtime API, "Stream
 * synchronization behavior"). */
enum judge_stream_kind { JUDGE_BLOCKING, JUDGE_NON_BLOCKING, JUDGE_LEGACY };

/* Numbers for all that follows are >= 0 and given out by the judge; what is told of one
 * that was not, or not any more, is passed over. */
int judge_stream_made(struct judge *j, enum judge_stream_kind kind, int device,
                      struct judge_at at);
void judge_stream_gone(struct judge *j, int stream); // what is in it still happens

struct judge_range {
    const void *start;
    size_t bytes;
    bool write;
    // The call says that this is the device's: it is wrong if it was freed. Where it may
    // be the host's (false), malloc may have given out again what cudaFree gave back.
    bool device;
};

/* A kernel may write it, somewhere: all that is known of it is that it may be written. */
void judge_memory_written(struct judge *j, const void *address);

enum judge_op_kind {
    JUDGE_COPY,      // of the whole ranges
    JUDGE_COPY_ROWS, // with gaps between the rows
    JUDGE_SET,
    JUDGE_COMPUTES, // cuBLAS
    JUDGE_KERNEL,   // what it uses is not known
    // Into a window of another rank, or only signals it; signals of others
    // (ncclWaitSignal).
    JUDGE_PUTS,
    JUDGE_AWAITS
};

/* An operation is queued; ranges outside known memory are passed over, those that run
 * past the end of an allocation or into freed memory are wrong. True if something was
 * wrong with its ranges. */
bool judge_op(struct judge *j, int stream, const struct judge_range *ranges, int n,
              enum judge_op_kind kind, struct judge_at at);

/* cudaLaunchHostFunc. The front calls the other two in the thread that runs the function;
 * with the number that the first returned. What is called in between, is called by the
 * function. */
int judge_host_function(struct judge *j, int stream, struct judge_at at);
void judge_host_function_begins(struct judge *j, int function);
void judge_host_function_ends(struct judge *j, int function);

/* An operation of a library is about to be queued, whose handle was made for `device`, by
 * `made`. True if the stream is one of another device: reported. */
bool judge_handle_device(struct judge *j, int stream, int device, struct judge_at made,
                         struct judge_at at);

int judge_event_made(struct judge *j, struct judge_at at);
void judge_event_gone(struct judge *j, int event);
/* Other processes record one of the events, and wait for it: from then on, what comes
 * before what is not known. */
void judge_shares_event(struct judge *j);
void judge_record(struct judge *j, int event, int stream, struct judge_at at);
void judge_stream_waits(struct judge *j, int stream, int event, struct judge_at at);

/* Capture. Whatever is queued on a capturing stream belongs to the graph; a stream that
 * waits for an event recorded in the capture joins it. The front passes on only what the
 * library accepted. */
void judge_capture_begins(struct judge *j, int stream, struct judge_at at);
// the graph's number; -1
int judge_capture_ends(struct judge *j, int stream, bool success);
// executable's number
int judge_graph_instantiated(struct judge *j, int graph, struct judge_at at);
void judge_graph_launched(struct judge *j, int executable, int stream,
                          struct judge_at at);
void judge_graph_gone(struct judge *j, int graph);
void judge_executable_gone(struct judge *j, int executable);

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
    JUDGE_SUSPEND, // ncclCommSuspend, ncclCommResume: likewise
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
void judge_failed(struct judge *j, bool cuda, const char *text, struct judge_at at);
/* The thread makes a call that is not told, since the library will refuse it: that it
 * fails takes back nothing that was told before from the same line. */
void judge_not_told(struct judge *j);
/* The thread has asked what went wrong (cudaGetLastError, ncclGetLastError, …). */
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

/* The thread waits until another one of the program has ended (pthread_join;
 * judge_thread_name's); 0: no longer. */
void judge_waits_thread(struct judge *j, uint64_t name);

/* Begun before a call that may block, ended when it has returned; of the thread that is
 * in. What the wait is for is what was queued when it began. */
void judge_wait_stream(struct judge *j, int stream, struct judge_at at);
void judge_wait_event(struct judge *j, int event, struct judge_at at);
// -1: all devices
void judge_wait_device(struct judge *j, int device, struct judge_at at);
/* Inside NCCL, for all that this thread told of since the group began (joins, splits,
 * calls that must be launched). */
void judge_wait_launch(struct judge *j, struct judge_at at);
/* ncclCommDestroy or ncclCommFinalize: for the ranks of the communicator on this machine.
 */
void judge_wait_leave(struct judge *j, int comm, struct judge_at at);
/* In MPI: for the ranks that judge_outside.mpi_ranks makes of `whom`, which stays
 * readable until the wait ends: for all of them (JUDGE_ALL, or the one with peer >= 0),
 * or for any of them (JUDGE_ONE_OF); JUDGE_ANY: nobody knows for whom. */
enum { JUDGE_ALL = -1, JUDGE_ANY = -2, JUDGE_ONE_OF = -3 };
/* What a call of MPI is, and all that the process has under way in MPI: otherwise, with a
 * request that is not completed, say, it is JUDGE_MORE. A collective call is no message;
 * JUDGE_MEETS: one that no rank can leave before all have come (MPI_Barrier). */
enum judge_way { JUDGE_MORE, JUDGE_NO_MESSAGE, JUDGE_MEETS, JUDGE_SENDS, JUDGE_RECEIVES };
void judge_wait_mpi(struct judge *j, const void *whom, int peer, enum judge_way way,
                    struct judge_at at);
/* `happened`: what was waited for has happened, and the host knows it. */
void judge_wait_end(struct judge *j, bool happened);

/* Asking is not waiting; but who asks for ever waits. `done`: the answer. */
void judge_poll_stream(struct judge *j, int stream, bool done, struct judge_at at);
void judge_poll_event(struct judge *j, int event, bool done, struct judge_at at);
void judge_poll_mpi(struct judge *j, bool done, struct judge_at at);
/* Whether a communicator is ready. Not yet, after a call of this thread on it: that call
 * is what it waits for (until it is finalized). */
void judge_poll_comm(struct judge *j, int comm, bool done, struct judge_at at);
/* The same of a communicator that is still being made, by this join: not yet. */
void judge_poll_join(struct judge *j, const struct judge_join *join, struct judge_at at);

/* MPI_Finalize (the front then waits for all, as a wait of this kind, so that others can
 * be told where this rank is), or the end of the process without it; or this rank ends
 * the job, by `at`: whether others have waited for it is said a moment later. */
enum judge_finish { JUDGE_EXITS, JUDGE_FINALIZES, JUDGE_ENDS_JOB };
void judge_finishes(struct judge *j, enum judge_finish how, struct judge_at at);
/* The process ends: what is still queued, or waits in a group, is lost. */
void judge_exits(struct judge *j);
/* At the very end: "1 device buffer (made at x.c:12), 2 streams (made at …)", "" if
 * nothing is left, and what of it others have aborted; and "3 calls returned errors, the
 * first: …", "" if none. */
void judge_left_behind(struct judge *j, char *out, size_t bytes);
void judge_failures(struct judge *j, char *out, size_t bytes);
/* "cudaMemcpy at x.c:12, of what cudaMalloc made at x.c:9": the first copy to the host of
 * device memory that nothing has written; "" if there was none. On some ranks that may be
 * right: only where all have the same one, one of them was meant to be written. */
void judge_unwritten(struct judge *j, char *out, size_t bytes);
/* These words of all processes of a machine, in lines or in one (JUDGE_CALLS_FAILED), are
 * said by the last of them to end. They are given up. */
enum judge_last_words {
    JUDGE_UNWRITTEN,
    JUDGE_LEFT_BEHIND,
    JUDGE_CALLS_FAILED,
    JUDGE_LAST_WORDS
};
struct text;
void judge_says_last(struct judge *j, enum judge_last_words what, struct text *ranks);
/* MPI_Abort: the program itself ends the job, and what it leaves behind is no mistake.
 * Why it does is said as far as it is known. */
void judge_aborts(struct judge *j);

#endif
