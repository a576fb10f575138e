/*
 * nccl_front.h: what the front's functions of NCCL share, those made of nccl.list among
 * them.
 *
 *   nccl_comms.c    the communicators that the program has, and calls on them
 *   nccl_makes.c    making them
 *   nccl_ends.c     giving them up, and asking them
 *   nccl_memory.c   memory, buffers that are registered
 *   nccl_calls.c    groups, collectives, point to point
 *   nccl_device.c   what kernels get of NCCL's
 */
#ifndef NCCL_FRONT_H
#define NCCL_FRONT_H

#include "answer.h"
#include "timeline.h"

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

/* nccl_comms.c: what is known of a communicator */

enum { COMM_STREAMS = 4 };

struct comm {
    enum { NOT_KNOWN, COMING, THERE, GONE } state;
    bool ending; // finalized, and not done yet as far as the program has asked
    bool slow;   // it does not block
    bool failed; // while it was coming, as the program was told
    cudaStream_t streams[COMM_STREAMS]; // that its newest calls are on
    int nstreams;
    int number;           // the judge's; not while it is coming
    unsigned times_ready; // comm_times_ready, when it came
    uint64_t id;
    int rank, nranks, device; // rank -1: to be asked
    struct map shrunk;        // by the ranks that are left out: how often
    uint64_t grown;           // so often
    struct map scalars;       // of its own reductions, where they are on the device
    // What is not there until all ranks have come: itself, or what is made of it; nranks
    // 0: nothing.
    struct judge_join join;
    struct judge_at at;
};
/* How often the program was told by ncclCommGetAsyncError that a communicator is ready.
 */
extern unsigned comm_times_ready;

/* In between front_in and front_out; NULL: it is not known. */
struct comm *comm_known(ncclComm_t handle);
const struct comm *comm_announce(struct judge *j, ncclComm_t handle,
                                 const struct comm *like);
void comm_gone(const void *handle, struct comm *comm); // it is given up

/* Outside of them. */
struct comm comm_now(ncclComm_t handle); // what is known of it
bool comm_is_ready(ncclComm_t handle);   // as NCCL says
void comm_is_there(ncclComm_t handle, struct comm like);
/* A communicator that does not block and was coming may be there by now. */
void comm_look_again(ncclComm_t handle);
/* front_in, for a communicator that is about to be used. One that is still on the way is
 * not ready to be, and one that has come meanwhile was ready by luck, if the program has
 * asked for none since then. */
struct judge *comm_in(ncclComm_t handle, struct comm **comm, struct judge_at at);

/* A communicator that a call of this thread makes: where it will be written to, and what
 * is known. */
struct newcomm {
    struct newcomm *next;
    ncclComm_t *out, parent; // parent: of a split
    struct comm like;
};
/* NCCL 2.28.3 writes what is split off a communicator that does not block when it is
 * ready, and the handle is NULL until then. Those that have come are taken; `asked`: the
 * program was told so. */
void newcomm_promised(const struct newcomm *newcomm);
void comm_take_promised(bool asked);

/* Round a call on a communicator, which no other thread may make at the same time. */
void comm_entered(ncclComm_t handle, struct judge_at at);
void comm_left(void);

/* The open group of this thread. */
extern __thread struct nccl_group {
    int depth;
    bool failed; // a call in it, as its end says once more
    struct newcomm *newcomms;
} nccl_group;

/* nccl_comms.c: how a call begins and ends */

static inline bool nccl_failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
}
ncclResult_t nccl_answer(ncclResult_t result, struct judge_at at);
void nccl_returned(ncclResult_t result); // from a call that waited
ncclResult_t nccl_waited(ncclResult_t result, struct judge_at at); // and is the answer

/* The program's CUDA is what is called below here; with `used` it must have been used.
 * Gives up otherwise. */
bool nccl_sees_cuda(bool used);
/* The library below is older than the function. */
ncclResult_t nccl_lacks(const char *name);
#ifdef FRONT_LINKED
#define NCCL_LACKS(name) false
#else
#define NCCL_LACKS(name) (!PNCCL(name))
#endif

/* The first lines of a function. */
#define PASS_NCCL(name, ...)                                                      \
    if (front_passes())                                                           \
        return PNCCL(name)(__VA_ARGS__);                                          \
    const struct front_caller caller = front_caller(__builtin_return_address(0)); \
    if (caller.theirs || !nccl_sees_cuda(false))                                  \
    return PNCCL(name)(__VA_ARGS__)
#define ENTER_NCCL(name, ...)       \
    if (NCCL_LACKS(name))           \
        return nccl_lacks(#name);   \
    PASS_NCCL(name, ##__VA_ARGS__); \
    const struct judge_at at = {__func__, python_site(caller.site)}
/* The same for one that uses a communicator, `comm`: one that was given up is not passed
 * on. */
bool comm_is_given_up(ncclComm_t handle, struct judge_at at);
#define ENTER_COMM(name, ...)        \
    ENTER_NCCL(name, ##__VA_ARGS__); \
    if (comm_is_given_up(comm, at))  \
    return ncclInvalidArgument

/* A call in which all ranks of a communicator meet, outside of a group. */
#define MEETS(id, call)                                                                  \
    ({                                                                                   \
        struct timeline_wait meets = {.at = at, .device = -1, .world = -1, .group = id}; \
        nccl_group.depth > 0 ? (call) : HOST_WAITS(&meets, call);                        \
    })

/* nccl_makes.c */

uint64_t comm_hash_ids(const ncclUniqueId *ids, int n);
void comm_joins(ncclComm_t *out, const ncclUniqueId *ids, int nids, int nranks, int rank,
                const ncclConfig_t *config, struct judge_at at);
/* After the group, or a call alone: what its calls have made is there, or coming. */
void newcomms_end(ncclResult_t result);
/* After a call that makes a communicator, inside a group or not. */
ncclResult_t newcomm_returned(ncclResult_t result, struct judge_at at);
/* Of every communicator that the open group makes, it makes all ranks. */
bool newcomms_complete(void);
/* A call that all ranks of a communicator make, on no stream. False: it is none that is
 * known. `id`: of what it makes, the same on all ranks. */
bool comm_together(ncclComm_t handle, enum judge_kind kind, int color, uint64_t *id,
                   size_t bytes, struct judge_at at);

/* nccl_ends.c: before the call. True: the communicator is known, and `waits`. */
bool comm_ends(ncclComm_t handle, enum judge_end how, bool waits, struct judge_at at);

/* nccl_calls.c */

enum { NO_ROOT = -1 };

struct nccl_call {
    enum judge_kind kind;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    const ncclRedOp_t *op; // NULL: it does not reduce
    int root;              // or peer
    ncclComm_t comm;
    cudaStream_t stream;
    const void *config; // an ncclCollConfig_t, or NULL
};
/* What the judge says of a call before it is made; then what the call returned. */
enum judged { NOT_JUDGED, JUDGED_RIGHT, JUDGED_WRONG, COMM_IS_GONE };
enum judged nccl_judge(const struct nccl_call *call, struct judge_at at);
ncclResult_t nccl_judged(enum judged judged, ncclResult_t result, struct judge_at at);
/* A call whose buffers are wrong is not made: it has been named, and would end in a
 * crash. */
ncclResult_t nccl_refused(struct judge_at at);

/* A call on a stream that moves data to another rank, or waits for it, without its doing:
 * what it reads here; NULL: nothing. The communicator that is returned is -1 if it is not
 * known, or was revoked, or is suspended. */
struct judge_signal nccl_one_sided(ncclComm_t comm, enum judge_op_kind kind,
                                   const void *reads, size_t bytes, cudaStream_t stream,
                                   struct judge_at at);
size_t nccl_bytes(size_t count, ncclDataType_t type);

/* nccl_device.c: a window or a device communicator, of which kernels are told. */
void front_handle_made(struct judge *j, const void *handle, struct judge_at at);
/* Where it was made, to make it anew if NCCL refuses to end it; call NULL: not known. */
struct judge_at front_handle_ends(const void *handle, struct judge_at at);

/* The kinds of nccl.list */

/* The judge hears only that it failed. */
#define NCCL_PASSED(name, parameters, ...)                      \
    ncclResult_t name parameters {                              \
        ENTER_NCCL(name, __VA_ARGS__);                          \
        return nccl_answer(CALL(PNCCL(name), __VA_ARGS__), at); \
    }
/* Likewise, on `comm`. */
#define NCCL_ON_COMM(name, parameters, ...)                     \
    ncclResult_t name parameters {                              \
        ENTER_COMM(name, __VA_ARGS__);                          \
        return nccl_answer(CALL(PNCCL(name), __VA_ARGS__), at); \
    }
/* All ranks meet in it, if `when`. */
#define NCCL_TOGETHER(name, parameters, kind, when, ...)                    \
    ncclResult_t name parameters {                                          \
        ENTER_COMM(name, __VA_ARGS__);                                      \
        bool waits = (when) && comm_together(comm, kind, 0, NULL, 0, at) && \
                     nccl_group.depth == 0;                                 \
        ncclResult_t result = CALL(PNCCL(name), __VA_ARGS__);               \
        return waits ? nccl_waited(result, at) : nccl_answer(result, at);   \
    }
/* The communicator ends for this rank: it is aborted, or revoked. That may be refused,
 * and is told when it was not. */
#define NCCL_ENDS(name, parameters, how, ...)                               \
    ncclResult_t name parameters {                                          \
        ENTER_COMM(name, __VA_ARGS__);                                      \
        const bool after = (how) == JUDGE_REVOKED;                          \
        bool waits = !after && comm_ends(comm, how, !nccl_group.depth, at); \
        ncclResult_t result = CALL(PNCCL(name), __VA_ARGS__);               \
        if (waits)                                                          \
            TELL(judge_wait_end, false);                                    \
        if (after && !nccl_failed(result))                                  \
            comm_ends(comm, how, false, at);                                \
        return nccl_answer(result, at);                                     \
    }
/* A rank joins by the ids. */
#define NCCL_JOINS(name, parameters, ids, nids, config, ...)                      \
    ncclResult_t name parameters {                                                \
        ENTER_NCCL(name, __VA_ARGS__);                                            \
        comm_joins(newcomm, ids, nids, nranks, rank, config, at);                 \
        return newcomm_returned(                                                  \
            MEETS(comm_hash_ids(ids, nids), CALL(PNCCL(name), __VA_ARGS__)), at); \
    }
#define NCCL_CALL(name, ...) NCCL_CALL_AS(NULL, name, __VA_ARGS__)
#define NCCL_CONFIGURED(name, ...) NCCL_CALL_AS(config, name, __VA_ARGS__)
#define NCCL_CALL_AS(config, name, parameters, kind, send, recv, op, root, ...) \
    ncclResult_t name parameters {                                              \
        ENTER_NCCL(name, __VA_ARGS__);                                          \
        if (!nccl_sees_cuda(true))                                              \
            return PNCCL(name)(__VA_ARGS__);                                    \
        const struct nccl_call call = {kind, send, recv, count,  type,          \
                                       op,   root, comm, stream, config};       \
        comm_entered(comm, at);                                                 \
        enum judged judged = nccl_judge(&call, at);                             \
        ncclResult_t result = ncclInvalidArgument;                              \
        if (judged == JUDGED_WRONG)                                             \
            result = nccl_refused(at);                                          \
        else if (judged != COMM_IS_GONE)                                        \
            result = nccl_judged(judged, CALL(PNCCL(name), __VA_ARGS__), at);   \
        comm_left();                                                            \
        return result;                                                          \
    }
#define NCCL_ONE_SIDED(name, parameters, kind, npeers, peer, index, waits, ...)    \
    ncclResult_t name parameters {                                                 \
        ENTER_COMM(name, __VA_ARGS__);                                             \
        comm_entered(comm, at);                                                    \
        struct judge_signal one = nccl_one_sided(comm, kind, NULL, 0, stream, at); \
        ncclResult_t result = CALL(PNCCL(name), __VA_ARGS__);                      \
        comm_left();                                                               \
        for (int i = 0; i < npeers && !nccl_failed(result); i++)                   \
            TELL(judge_signals, one, peer, index, waits);                          \
        return nccl_answer(result, at);                                            \
    }

#endif
