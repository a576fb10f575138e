/*
 * internal.h: what the parts of the CPU build know of one another.
 *
 *   cuda.c, memory.c   the CUDA runtime's calls: devices, streams, events, memory
 *   cublas.c           cuBLAS's: one vector added to another
 *   nccl.c             NCCL's calls: arguments checked, work queued
 *   queue.c            streams: operations in order, and what advances them
 *   carry.c            an operation of NCCL carried out, by MPI or inside the process
 *   wire.c             announcements between ranks: "I have come to this call"
 *   setup.c            how ranks find one another and become a communicator
 *   check.c            what ranks announce and queue, against the rules
 *   judge.c            who waits for whom, and whether it can still come
 *   report.c           the text of a report, the line of a call, the end of the job
 *   host_mpi.c         the program's own MPI calls, watched while they wait
 *   number.c           data types and reductions
 *
 * check.c and judge.c move no data: they judge descriptions of calls (struct facts), so
 * that they could stand in front of any NCCL.
 */
#ifndef CPU_INTERNAL_H
#define CPU_INTERNAL_H

#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line that called a public function: taken at its entry, looked up only if needed.
 */
#define CALLER __builtin_return_address(0)

/* --- One lock, one state ---------------------------------------------------------- */

enum check_mode { CHECK_OFF, CHECK_WARN, CHECK_ON };

extern struct library {
    enum check_mode check;
    double timeout;    // seconds without progress on any rank (NCCL_CPU_TIMEOUT)
    bool mpi;          // MPI was started by the program, and not ended
    bool over;         // the job is ending: judge nothing any more
    int world, nworld; // this process in MPI_COMM_WORLD
    MPI_Comm control;  // announcements travel here
    MPI_Comm nursery;  // communicators are made from this one: it carries nothing else
    char host[64];
    uint64_t job;      // a number that all processes of the job share
    char failure[96];  // what the last call of NCCL that failed said,
    void *failed_at;   // and where it was called
    uint64_t activity; // grows with everything that this process gets done
} library;

void lock_library(void);
void unlock_library(void);
double now(void);
void *must_alloc(size_t bytes);              // zeroed; never NULL
void *must_grow(void *memory, size_t bytes); // realloc that never fails

/* Where the program called the public function that this thread is in. */
extern __thread void *called_from;

/* Locks for the rest of the scope of a public function; one may call another. */
static inline void *enter(void *site) {
    lock_library();
    void *before = called_from;
    if (!before)
        called_from = site;
    return before;
}
static inline void leave(void **before) {
    called_from = *before;
    unlock_library();
}
#define PUBLIC_CALL __attribute__((cleanup(leave), unused)) void *entered = enter(CALLER)

/* --- Memory ----------------------------------------------------------------------- */

enum memory_kind { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_MANAGED };

/* One allocation: at `user` as the program may use it (a device's memory not at all), at
 * `shadow` as this library reads and writes it. */
struct memory {
    char *user, *shadow;
    size_t bytes, mapped;
    enum memory_kind kind;
    int device;
    void *site, *end_site; // where it was made, and freed
};

struct memory *memory_find(const void *address); // NULL: not ours
/* The allocation that was freed there, of those that were freed last; NULL: none. */
const struct memory *memory_freed(const void *address);
/* Where this library may touch what the program calls `address`. */
void *shadow(const void *address);
cudaError_t memory_create(void **out, size_t bytes, enum memory_kind kind, void *site);
void memory_destroy(struct memory *memory, void *site);
void memory_guard(
    struct memory *memory); // its protection, after an operation came or went
cudaError_t cuda_error(cudaError_t error); // remembers it for cudaGetLastError
size_t events_left(void **site); // how many there are, and where the newest was made
const char *memory_kind_name(enum memory_kind kind);
size_t memory_count(void);
struct memory *memory_at(size_t i);
void memory_reset_device(int device);

/* --- Streams and operations ------------------------------------------------------- */

struct range {
    char *start;
    size_t bytes;
    bool write;
    const struct call *call; // of NCCL that uses it; NULL: the operation itself
};

struct dependency {
    int slot; // of the stream
    uint64_t seq;
};

enum op_kind {
    OP_COPY,
    OP_SET,
    OP_FREE,
    OP_HOST_FUNCTION,
    OP_COMPUTE, // a library of the GPU calculates
    OP_EVENT,
    OP_WAIT,
    OP_NCCL
};
enum op_state { OP_QUEUED, OP_STARTED, OP_DONE };

struct op {
    enum op_kind kind;
    enum op_state state;
    const char *name; // of the call that queued it
    void *site;
    struct stream *stream;
    uint64_t seq; // on its stream, from 1
    struct op *next;
    struct dependency *dependencies;
    int ndependencies;
    struct range *ranges;
    int nranges;
    // OP_COPY, OP_SET, OP_FREE
    char *destination;
    const char *source;
    void *staged; // a copy of pageable host memory, taken when the call was made
    size_t bytes;
    int value;
    // OP_EVENT
    struct CUevent_st *event;
    double *time;
    // OP_HOST_FUNCTION; OP_COMPUTE, with its argument in `staged`, `bytes` long
    cudaHostFn_t function;
    void *argument;
    // OP_NCCL: the calls of one group on this stream
    struct call *calls;
};

/* A stream keeps its operations until the host knows that they have happened: what the
 * host does not know yet is what it can race with. */
struct stream {
    int slot; // index of its clock
    int device;
    bool blocking, legacy, destroyed;
    void *site;
    struct op *first, *last; // unseen operations, oldest first
    struct op *head;         // the oldest that is not done
    uint64_t queued;         // sequence number of the newest
    struct graph *capturing;
};

extern int nstreams;            // slots, some of them empty
extern struct stream **streams; // per slot
extern uint64_t *done;          // per slot: how far the stream is
extern uint64_t *seen;          // per slot: how far the host knows it to be

struct stream *stream_of(cudaStream_t handle, int device); // NULL: no such stream
struct stream *legacy_stream(int device);
struct stream *stream_create(int device, bool blocking, void *site);
void stream_retire(struct stream *stream);
struct op *op_create(enum op_kind kind, const char *name, void *site);
void op_range(struct op *op, const void *start, size_t bytes, bool write,
              const struct call *call);
void op_depend(struct op *op, int slot, uint64_t seq);
/* Queues `op`; what the default stream's rules demand is added. */
void op_enqueue(struct op *op, struct stream *stream);
/* Whether operation `seq` of `stream` comes before whatever `after` gets next. */
bool ordered_before(struct stream *stream, uint64_t seq, struct stream *after);
uint64_t *clock_of(struct stream *stream); // nstreams entries
void op_free(struct op *op);
bool advance(void);  // does what can be done now; true if anything was
bool progress(void); // the same, after a look at what has come from other ranks
/* Waits for operation `seq` of `stream`. */
void wait_until(struct stream *stream, uint64_t seq, const char *name, void *site);
/* Waits for the newest one; after it the host has seen all that it came after. */
void wait_for(struct stream *stream, uint64_t seq, const char *name, void *site);
void mark_seen(struct stream *stream, uint64_t seq);
void mark_clock_seen(const uint64_t *clock, int n);
/* One look, for cudaStreamQuery and cudaEventQuery. */
bool poll_for(struct stream *stream, uint64_t seq, const char *name, void *site);
/* Asked and not there yet: of an operation, or (stream NULL) of MPI. */
void poll_once(struct stream *stream, uint64_t seq, const char *name, void *site);
void poll_over(void);                     // this thread does something else now
extern const struct op *running_function; // the program's, in cudaLaunchHostFunc
void forget_seen(void);                   // operations that the host has seen are let go
size_t threads_here(void);

/* What cudaStreamBeginCapture to cudaStreamEndCapture recorded, in order. */
struct graph {
    bool invalid; // a call in between was not allowed
    struct op *first, *last;
    struct stream *origin;
};

/* --- Communicators and calls ------------------------------------------------------ */

enum collective {
    CALL_BROADCAST,
    CALL_ALL_REDUCE,
    CALL_REDUCE,
    CALL_ALL_GATHER,
    CALL_REDUCE_SCATTER,
    CALL_ALL_TO_ALL,
    CALL_GATHER,
    CALL_SCATTER,
    CALL_SPLIT,
    CALL_SEND,
    CALL_RECV,
    NUM_CALL_KINDS,
    CALL_LEAVE // a rank has given the communicator up
};

/* What a rank says of a call: all that the judge knows. */
struct facts {
    uint64_t comm;  // the communicator's number, the same on all its ranks
    int32_t rank;   // of the caller in it
    int32_t world;  // of the caller in MPI_COMM_WORLD
    int32_t kind;   // enum collective
    int32_t type;   // ncclDataType_t
    int32_t redop;  // ncclRedOp_t; a user-made one as PRE_MUL_SUM
    int32_t root;   // or the peer of a send or receive
    uint64_t count; // elements
    uint64_t seq; // among the collectives, or the sends or receives to this peer, from 1
    uint64_t index; // among all calls on the communicator, from 1
    int64_t site;   // offset of the caller in the program; -1 if it lies elsewhere
    int32_t device;
    int32_t together; // all ranks of the communicator are in this process
    char host[32];
};

enum { PRE_MUL_SUM = 1000 };
static inline bool point_to_point(int kind) {
    return kind == CALL_SEND || kind == CALL_RECV;
}

enum call_state { CALL_QUEUED, CALL_ANNOUNCED, CALL_MOVING, CALL_DONE };

struct call {
    struct facts facts;
    enum call_state state;
    struct ncclComm *comm;
    const void *sendbuff;
    void *recvbuff;
    char scalar[8];            // of PRE_MUL_SUM, as it is in memory
    const void *device_scalar; // read when the call starts
    struct call *next, *next_waiting;
    struct op *op;
    struct stream *stream; // that it was given, until it is queued
    void *site;
    // while it runs
    int missing;           // ranks whose announcement has not come
    bool *heard;           // which have
    struct facts *theirs;  // what they said
    double differ;         // since when it is known that they do not agree; 0: they do
    char *payloads;        // what came with their announcements
    MPI_Request *requests; // of MPI, while it moves the data
    int nrequests;
    bool failed;        // MPI could not: the ranks do not agree
    bool receiving;     // from the others, who have announced the same
    bool summed;        // (all-)reduce: this rank's part of the sums is made
    void *contribution; // what this rank brings, where that is not sendbuff itself
    void *result;       // where the sums are made, where that is not recvbuff itself
    int split[2];       // CALL_SPLIT: color and key
};

enum { HISTORY = 32 };

/* Announcements that came before the call they belong to. */
struct early {
    struct facts facts;
    struct early *next;
    size_t bytes;
    char payload[];
};

struct redop {
    bool live;
    ncclDataType_t type;
    bool on_device;
    char value[8];
    const void *scalar;
};

struct ncclComm {
    uint64_t magic, id;
    int number; // for people: the how-many-th communicator of this process
    int rank, nranks, device;
    int *world; // world rank of each of its ranks
    void *site, *end_site;
    const char *maker;
    bool destroyed, aborted, finalized;
    bool *left;            // which ranks have finalized, destroyed or aborted it
    MPI_Comm mpi;          // MPI_COMM_NULL: all its ranks are in this process
    struct clique *clique; // those ranks
    bool all_at_once;   // made by ncclCommInitAll: its calls go with those of the others,
    uint64_t batch;     // in one group; the newest collective's group or single call
    struct stream *own; // for calls that the program gives no stream
    uint64_t calls, collectives;   // made so far
    uint64_t *sends, *receives;    // made so far, per peer
    uint64_t started, moved;       // collectives, in order
    struct facts history[HISTORY]; // the newest of them
    struct call *running;          // those that are announced and not done
    struct early *early, *last_early;
    char *scratch; // for one call at a time
    size_t scratch_bytes;
    bool scratch_lent;
    struct redop *redops;
    int nredops;
    uint64_t splits;
    struct ncclComm *next;
};

/* The ranks of a communicator that are all in this process. */
struct clique {
    int nranks;
    struct call *waiting; // their announced calls, linked by next_waiting
};

extern struct ncclComm *communicators;
struct ncclComm *comm_by_id(uint64_t id);
struct ncclComm *comm_create(uint64_t id, int rank, int nranks, const int *world,
                             int device, const char *maker, void *site);
ncclResult_t nccl_error(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* setup.c */
struct init { // a call of ncclCommInitRank that has not returned
    struct ncclComm **out;
    uint64_t id;
    int creator; // world rank of the process that made the unique id
    int rank, nranks, device;
    const char *name;
    void *site;
    struct init *next, *next_joining;
    bool answered;
    ncclResult_t result;
    int *world;
};
struct split { // a call of ncclCommSplit that has not returned
    struct ncclComm *comm, **out;
    int color, key;
    void *site;
    struct split *next;
    struct call *call;
    uint64_t seq;
};
extern struct init *joining;
ncclResult_t setup_unique_id(ncclUniqueId *id);
bool setup_read_id(const ncclUniqueId *id, uint64_t *number, int *creator);
ncclResult_t setup_join(struct init *inits);    // all of them at once; frees them
ncclResult_t setup_split(struct split *splits); // likewise
void setup_receive(int type, int from, const char *data, size_t bytes);

/* nccl.c */
struct call *call_create(struct ncclComm *comm, int kind, void *site);
struct call *call_copy(const struct call *call);
void call_number(struct call *call);
/* The open group: its depth, and the calls that wait in it for `stream` (NULL: all). */
int group_open(struct stream *stream, void **site, struct call **first, int *ncalls);

/* carry.c */
void call_announce(struct call *call);
bool call_advance(struct call *call); // true if it got further
void call_heard(struct ncclComm *comm, const struct facts *facts, const char *payload,
                size_t bytes);
void call_release(struct call *call);
/* Whether this rank and rank r tell each other of the call. */
bool call_talks(const struct call *call, int r);
/* Tells the other ranks that this one has given `comm` up. */
void comm_leave(struct ncclComm *comm);
/* The first rank on this host, from `from` on, that has not; -1: none. */
int comm_remains(const struct ncclComm *comm, int from);
size_t call_send_bytes(const struct call *call); // of sendbuff; 0 where it is not used
size_t call_recv_bytes(const struct call *call); // of recvbuff; 0 where it is not used

/* number.c */
size_t type_size(int type);
int carry_type(int type); // what is added up: float for the types narrower than that
MPI_Datatype mpi_type(int type);
void to_carry(void *out, const void *in, size_t n, int type, int redop,
              const void *scalar);
void from_carry(void *out, const void *in, size_t n, int type, int redop, int nranks);
void reduce_into(void *total, const void *more, size_t n, int carry, int redop);

/* wire.c */
enum wire_type {
    WIRE_CALL = 1, // struct facts and payload
    WIRE_JOIN,     // ncclCommInitRank, to the rank that made the unique id
    WIRE_JOINED,   // its answer
    WIRE_STATE,    // a waiting rank describes itself to rank 0 of the world
};
void wire_send(int world, int type, const void *head, size_t head_bytes,
               const void *payload, size_t bytes);
/* Only if the one before it has been received: what waits need not pile up. */
void wire_send_state(const void *data, size_t bytes);
bool wire_poll(void);                   // true if anything came
void wire_adopt(struct ncclComm *comm); // what came for it before it was known here

/* host_mpi.c */
extern int ranks_on_host;       // 0: not known
bool on_this_host(int world);   // a rank of MPI_COMM_WORLD
extern size_t threads_at_start; // that are not the program's

/* check.c */
bool facts_agree(const struct facts *a, const struct facts *b);
/* The calls of a communicator's ranks at one position, have[r] where rank r's is known.
 */
void check_mismatch(const struct facts *all, const bool *have, int n);
void check_pair(const struct facts *mine, const struct facts *theirs); // send and receive
bool check_overlap(struct call *call); // true if the call must not be carried out
void check_one_by_one(const struct call *call, uint64_t batch);
void check_race(struct op *op, struct stream *stream);
void check_group_race(struct op *op); // between the calls of one group
/* The host itself is about to do `what` ("frees") with these bytes. */
void check_host_access(const char *name, void *site, const void *start, size_t bytes,
                       const char *what);
/* What an MPI call was given: MPI takes memory of the host. */
void check_host_buffers(const char *name, void *site, const void *const *buffers, int n);
/* True if the access is past the end of its allocation; reported. */
bool check_range(const char *name, void *site, const void *start, size_t bytes);
bool check_nccl_buffer(struct call *call, const char *which, const void *start,
                       size_t bytes);
/* Operations that the host does not know to be done; of `comm`, or of all if NULL. */
void check_unfinished(const char *name, void *site, struct ncclComm *comm);
void check_left_behind(void);
_Noreturn void check_too_late(const char *name, void *site); // after MPI_Finalize
/* A group that holds calls for `stream` (NULL: any, or none) and was not ended. */
void check_group_open(const char *name, void *site, struct stream *stream);

/* judge.c */
/* What a thread waits for, as the judge sees it. */
enum wait_kind {
    WAIT_NOTHING,
    WAIT_OP,       // operation `seq` of `stream`
    WAIT_JOIN,     // ncclCommInitRank
    WAIT_LEAVE,    // ncclCommDestroy, for the ranks of `comm` on this host
    WAIT_HOST_MPI, // an MPI call of the program
    WAIT_FINALIZE, // MPI_Finalize: no call comes after it
    WAIT_EXIT,     // the program has ended without MPI_Finalize
    WAIT_POLL,     // asks again and again
};
struct wait {
    enum wait_kind kind;
    const char *name;
    void *site;
    struct stream *stream;
    uint64_t seq;
    MPI_Comm mpi;  // WAIT_HOST_MPI: its communicator
    int peer;      // the one rank of it that is waited for, or one of:
    double since;  // last progress
    unsigned idle; // looks since then
    double told;   // when the judge was last told
    uint64_t activity;
    struct wait *outer;
    struct init *init;     // WAIT_JOIN
    struct ncclComm *comm; // WAIT_LEAVE
};
enum { PEER_ALL = -1, PEER_UNKNOWN = -2 };
void wait_begin(struct wait *wait, enum wait_kind kind, const char *name, void *site);
/* Once per look: tells the judge, lets other threads in, and the processor go. */
void wait_tick(struct wait *wait, bool progress);
void wait_end(struct wait *wait);
void judge_receive(int from, const char *data, size_t bytes);

/* report.c */
int64_t site_offset(void *site);
/* "broadcast.c:57", or the function's name, into out. */
const char *site_text(char out[256], void *site);
const char *offset_text(char out[256], int64_t offset);
const char *facts_text(char out[256], const struct facts *facts);
/* Who uses a range, in words: a call of NCCL with its arguments; and its line. */
const char *range_text(char out[256], const struct op *op, const struct range *range);
const char *range_site(char out[256], const struct op *op, const struct range *range);
const char *redop_name(int redop);
const char *type_name(int type);
const char *kind_name(int kind);

struct text {
    char *at;
    size_t used, size;
};
void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void add_ranks(struct text *text, const int *ranks, int n); // "ranks 0, 1, 4"
/* Prints a report and ends the job; returns only in CHECK_WARN and if `may_go_on`. What
 * several ranks find is printed once. */
void report(struct text *text, bool may_go_on);
void report_note(struct text *text); // prints, and goes on

#endif
