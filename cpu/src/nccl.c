/*
 * nccl.c has NCCL's calls. Arguments are checked as NCCL checks them and the work is
 * queued; it happens when a wait advances the stream.
 * NCCL User Guide, "NCCL API", "Group Calls", "Fault Tolerance".
 */
#include "hosts.h"
#include "capture.h"
#include "carry.h"
#include "device.h"
#include "meet.h"
#include "number.h"

/* At the entry of a call of NCCL: takes the lock, refuses a host function's call. */
#define NCCL_CALL                                                                       \
    if (in_host_function())                                                             \
        return nccl_error(ncclInvalidUsage, "%s: called by a host function", __func__); \
    if (device_forked())                                                                \
        return nccl_error(ncclUnhandledCudaError,                                       \
                          "%s: this process was forked off by "                         \
                          "one that uses CUDA",                                         \
                          __func__);                                                    \
    LOCKED

/* --- Errors ----------------------------------------------------------------------- */

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (see ncclGetLastError)";
    case ncclSystemError: return "unhandled system error (see ncclGetLastError)";
    case ncclInternalError: return "internal error (see ncclGetLastError)";
    case ncclInvalidArgument: return "invalid argument (see ncclGetLastError)";
    case ncclInvalidUsage: return "invalid usage (see ncclGetLastError)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
    }
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm; // NCCL keeps it per thread, too
    return nccl_last_error();
}

ncclResult_t ncclGetVersion(int *version) {
    if (!version)
        return nccl_error(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* NULL, a stranger, or a communicator that is no more: ncclInvalidArgument. */
static ncclResult_t check_handle(const char *name, const struct ncclComm *comm) {
    if (!comm)
        return nccl_error(ncclInvalidArgument, "%s: comm is NULL", name);
    if (!comm_known(comm) || comm->destroyed)
        return nccl_error(ncclInvalidArgument, "%s: comm is not a communicator", name);
    return ncclSuccess;
}

/* Nor may it be used while a call on it is under way. */
static ncclResult_t check_comm(const char *name, const struct ncclComm *comm) {
    ncclResult_t result = check_handle(name, comm);
    if (result != ncclSuccess)
        return result;
    if (comm->error != ncclSuccess)
        return nccl_error(comm->error, "%s: %s", name, comm->why);
    if (comm->state == JOINING || (comm->splitting && !comm->blocking))
        return nccl_error(ncclInvalidArgument,
                          "%s: comm is used before the call before returned ncclSuccess",
                          name);
    return ncclSuccess;
}

#define CHECK_COMM(comm)                                       \
    do {                                                       \
        ncclResult_t comm_result = check_comm(__func__, comm); \
        if (comm_result != ncclSuccess)                        \
            return comm_result;                                \
    } while (0)

/* --- Operations ------------------------------------------------------------------- */

/* The calls of one group on one communicator. */
struct unit {
    struct op op;
    struct ncclComm *comm;
    struct call *calls;
    bool too_late; // the communicator was no more when this was launched
    bool started;
};

/* --- What they cost, by the modelled clock --- */

static enum clock_op clock_op_of(int kind) {
    switch (kind) {
    case CALL_BROADCAST: return OP_BROADCAST;
    case CALL_REDUCE: return OP_REDUCE;
    case CALL_ALL_REDUCE: return OP_ALL_REDUCE;
    case CALL_ALL_GATHER: return OP_ALL_GATHER;
    case CALL_REDUCE_SCATTER: return OP_REDUCE_SCATTER;
    case CALL_ALL_TO_ALL: return OP_ALL_TO_ALL;
    case CALL_GATHER:
    case CALL_SCATTER: return OP_GATHER;
    default: return OP_SEND_RECV;
    }
}

/* The sends of a group share the way out, its receives the way in; both ways are used at
 * the same time. What is sent to oneself takes no way. */
static void add_messages(struct unit *unit) {
    struct ncclComm *comm = unit->comm;
    double bytes[2] = {0, 0};
    int peers[2] = {0, 0};
    bool any = false, far = false;
    for (const struct call *call = unit->calls; call; call = call->next) {
        const struct facts *f = &call->facts;
        if (!point_to_point(f->kind))
            continue;
        any = true;
        if (f->root == comm->rank && comm->nranks > 1)
            continue;
        bytes[f->kind == CALL_RECV] += (double)f->count * (double)type_size(f->type);
        peers[f->kind == CALL_RECV]++;
        far |= clock_far(comm->world[comm->rank], comm->world[f->root]);
    }
    if (!any)
        return;
    int most = bytes[1] > bytes[0];
    struct cost cost =
        clock_nccl(OP_SEND_RECV, &comm->ranks, bytes[most], peers[most], far);
    clock_add(&unit->op.cost, &cost);
}

static void set_cost(struct unit *unit) {
    struct ncclComm *comm = unit->comm;
    int ncalls = 0;
    for (const struct call *call = unit->calls; call; call = call->next)
        ncalls++;
    unit->op.cost = (struct cost){.host = clock_launch(ncalls)};
    add_messages(unit);
    for (const struct call *call = unit->calls; call; call = call->next) {
        const struct facts *f = &call->facts;
        double bytes = (double)f->count * (double)type_size(f->type);
        if (point_to_point(f->kind))
            continue;
        bool each = f->kind == CALL_ALL_GATHER || f->kind == CALL_REDUCE_SCATTER ||
                    f->kind == CALL_ALL_TO_ALL;
        int peers = comm->nranks > 1 ? comm->nranks - 1 : 1;
        if (clock_op_of(f->kind) == OP_GATHER)
            bytes *= peers;
        struct cost cost = clock_nccl(clock_op_of(f->kind), &comm->ranks,
                                      each ? bytes * comm->nranks : bytes, peers, false);
        clock_add(&unit->op.cost, &cost);
    }
}

/* It starts when the last of its ranks has come, and is as long as that with most to do.
 */
static void hear_others(struct unit *unit) {
    for (const struct call *call = unit->calls; call; call = call->next) {
        if (call->start > unit->op.start)
            unit->op.start = call->start;
        if (call->work > unit->op.cost.work)
            unit->op.cost.work = call->work;
    }
}

static bool step(struct op *op) {
    struct unit *unit = (struct unit *)op;
    bool usable = !unit->too_late;
    for (struct call *call = unit->calls; call && !unit->started; call = call->next)
        usable &= call_usable(call);
    if (!usable)
        device_break(unit->comm->device, cudaErrorIllegalAddress);
    if (!usable || unit->comm->aborted)
        return op->done = true;
    for (struct call *call = unit->calls; call && !unit->started; call = call->next) {
        call->facts.start = op->start;
        call->facts.work = op->cost.work;
    }
    unit->started = true;
    bool further = false;
    op->done = true;
    for (struct call *call = unit->calls; call; call = call->next) {
        if (call->state != CALL_DONE)
            further |= call_advance(call);
        op->done &= call->state == CALL_DONE;
    }
    if (op->done)
        hear_others(unit);
    return further;
}

/* Operations of a communicator follow one another, whatever their streams; they take
 * their turns when they are launched, not when they are captured. */
static void queued(struct op *op) {
    struct unit *unit = (struct unit *)op;
    struct ncclComm *comm = unit->comm;
    unit->too_late = comm->destroyed;
    for (struct call *call = unit->calls; call && !unit->too_late; call = call->next)
        call_number(call);
    op_after(op, comm->newest);
    comm->newest = (struct mark){op->stream->slot, op->stream->queued + 1};
}

static void drop(struct op *op) {
    struct unit *unit = (struct unit *)op;
    while (unit->calls) {
        struct call *call = unit->calls;
        unit->calls = call->next;
        call_release(call);
    }
    comm_release(unit->comm);
}

static struct op *copy(const struct op *op);

static struct unit *unit_create(struct ncclComm *comm) {
    struct unit *unit = (struct unit *)op_create(sizeof *unit, step);
    unit->op.drop = drop;
    unit->op.copy = copy;
    unit->op.queued = queued;
    unit->comm = comm;
    comm_hold(comm);
    return unit;
}

static struct op *copy(const struct op *op) {
    const struct unit *from = (const struct unit *)op;
    struct unit *unit = unit_create(from->comm);
    struct call **end = &unit->calls;
    for (const struct call *call = from->calls; call; call = call->next) {
        *end = call_copy(call);
        end = &(*end)->next;
    }
    unit->op.cost = from->op.cost;
    return &unit->op;
}

/* --- Groups ----------------------------------------------------------------------- */

struct made { // a communicator that is being made, and where its handle goes
    struct ncclComm *comm, **out;
    const char *name;
    struct made *next;
    // ncclCommInitRank
    ncclUniqueId id;
    int rank, nranks;
    // ncclCommSplit
    struct ncclComm *parent;
    int color, key;
};

static __thread struct {
    int depth;
    struct call *first, *last;
    struct made *makes;
    ncclResult_t error;
} group;

static bool streams_differ(const struct call *calls) {
    for (const struct call *call = calls; call; call = call->next)
        if (!call->stream->capture != !calls->stream->capture)
            return true;
    return false;
}

/* To send to oneself is to receive from oneself, in the same group. Whether both say the
 * same is not asked here, as NCCL does not ask. */
static bool alone_with_itself(const struct call *calls) {
    for (const struct call *a = calls; a; a = a->next) {
        const struct facts *f = &a->facts;
        if (!point_to_point(f->kind) || f->root != f->rank)
            continue;
        // The k-th send goes with the k-th receive.
        int before = 0;
        for (const struct call *b = calls; b != a; b = b->next)
            before += b->comm == a->comm && b->facts.kind == f->kind &&
                      b->facts.root == f->root;
        const struct call *b = calls;
        for (; b; b = b->next)
            if (b->comm == a->comm && point_to_point(b->facts.kind) &&
                b->facts.kind != f->kind && b->facts.root == f->root && before-- == 0)
                break;
        if (!b)
            return true;
    }
    return false;
}

/* Whether no call before this one is on its stream. */
static bool first_on_its_stream(const struct call *calls, const struct call *call) {
    while (calls->stream != call->stream)
        calls = calls->next;
    return calls == call;
}

/* Queues the calls on one communicator, in order; returns the rest. What is on several
 * streams "will behave as if the NCCL group operation was posted on every stream". */
static struct call *launch_one(struct call *calls) {
    struct unit *unit = unit_create(calls->comm);
    struct call **end = &unit->calls, *rest = NULL, **rest_end = &rest;
    struct stream *stream = calls->stream;
    while (calls) {
        struct call *call = calls, ***list = call->comm == unit->comm ? &end : &rest_end;
        calls = call->next;
        call->next = NULL;
        **list = call;
        *list = &call->next;
    }
    for (struct call *call = unit->calls; call; call = call->next)
        if (first_on_its_stream(unit->calls, call))
            stream_join(stream, call->stream);
    if (clock_on)
        set_cost(unit);
    op_enqueue(&unit->op, stream);
    for (struct call *call = unit->calls; call; call = call->next)
        if (first_on_its_stream(unit->calls, call))
            stream_join(call->stream, stream);
    return rest;
}

/* Of a communicator that does not block, NCCL puts calls into their streams in the
 * background, and says so ("Group Calls", "Nonblocking Group Operation"). Here they are
 * there at once. */
static ncclResult_t launch(struct call *calls) {
    const char *why = NULL;
    ncclResult_t result = ncclSuccess;
    if (calls && streams_differ(calls))
        why = "some streams of the group are captured and some are not";
    else if (alone_with_itself(calls))
        why =
            "a send to oneself, or a receive from oneself, without the other half in the"
            " same group";
    if (!why) {
        for (const struct call *call = calls; call; call = call->next)
            result = call->comm->blocking ? result : ncclInProgress;
        while (calls)
            calls = launch_one(calls);
        return result;
    }
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        call_release(call);
    }
    return nccl_error(ncclInvalidUsage, "%s", why);
}

static ncclResult_t queue_call(struct call *call, struct stream *stream) {
    call->stream = stream;
    if (group.depth == 0)
        return launch(call);
    if (group.last)
        group.last->next = call;
    else
        group.first = call;
    group.last = call;
    return ncclSuccess;
}

/* Communicators are made together: begun all of them, then waited for. */
static bool is_made(const void *comm) {
    const struct ncclComm *made = comm;
    return made->state == READY || made->error != ncclSuccess;
}

static ncclResult_t make(struct made *makes) {
    ncclResult_t result = ncclSuccess;
    for (struct made *made = makes; made; made = made->next)
        if (!made->parent)
            meet_announce(&made->id, made->rank, made->nranks);
    for (struct made *made = makes; made; made = made->next) {
        if (made->parent) {
            meet_split(made->parent, made->comm, made->color, made->key);
            continue;
        }
        ncclResult_t joined = meet_join(made->comm, &made->id, made->rank, made->nranks);
        if (joined != ncclSuccess) {
            made->comm->error = joined;
            snprintf(made->comm->why, sizeof made->comm->why, "%.255s",
                     nccl_last_error());
        }
    }
    while (makes) {
        struct made *made = makes;
        struct ncclComm *comm = made->comm;
        makes = made->next;
        if (!comm && made->parent->blocking) { // NCCL_SPLIT_NOCOLOR
            wait_for(stream_end(made->parent->own));
        } else if (comm ? !comm->blocking : true) {
            result = result == ncclSuccess ? ncclInProgress : result;
        } else {
            wait_until(is_made, comm);
            if (clock_on)
                clock_host_until(comm->born);
            if (comm->error != ncclSuccess) {
                result = nccl_error(comm->error, "%s: %s", made->name, comm->why);
                *made->out = NULL;
                comm_release(comm);
            }
        }
        free(made);
    }
    return result;
}

static ncclResult_t queue_make(struct made made) {
    struct made *mine = must_alloc(sizeof *mine), **end = &group.makes;
    *mine = made;
    *made.out = made.comm;
    if (group.depth == 0)
        return make(mine);
    while (*end)
        end = &(*end)->next;
    *end = mine;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    NCCL_CALL;
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    NCCL_CALL;
    if (group.depth == 0)
        return nccl_error(ncclInvalidUsage, "ncclGroupEnd: no ncclGroupStart before it");
    if (--group.depth > 0)
        return ncclSuccess;
    struct call *calls = group.first;
    struct made *makes = group.makes;
    ncclResult_t result = group.error;
    group.first = group.last = NULL;
    group.makes = NULL;
    group.error = ncclSuccess;
    ncclResult_t joined = make(makes);
    result = result == ncclSuccess ? joined : result;
    if (result == ncclSuccess || result == ncclInProgress) {
        ncclResult_t launched = launch(calls);
        return launched == ncclSuccess ? result : launched;
    }
    // NCCL launches nothing of a group in which a call failed.
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        call_release(call);
    }
    return result;
}

/* An error inside a group is the group's, too. */
static ncclResult_t in_group(ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress && group.depth > 0 &&
        group.error == ncclSuccess)
        group.error = result;
    return result;
}

/* --- Joining ---------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    NCCL_CALL;
    if (!id)
        return nccl_error(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    return meet_unique_id(id);
}

/* How many multiprocessors it may take, for the modelled clock; 0: as many as it likes.
 */
static int most_ctas(const ncclConfig_t *config) {
    return config && config->maxCTAs > 0 ? config->maxCTAs : 0;
}

static bool blocks(const ncclConfig_t *config) {
    return !config || config->blocking != 0;
}

static ncclResult_t init_rank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank,
                              const ncclConfig_t *config, const char *name) {
    int count;
    if (!out)
        return nccl_error(ncclInvalidArgument, "%s: comm is NULL", name);
    *out = NULL;
    if (nranks < 1 || rank < 0 || rank >= nranks)
        return nccl_error(ncclInvalidArgument, "%s: rank %d of %d ranks", name, rank,
                          nranks);
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "%s: no device", name);
    struct ncclComm *comm = comm_create(device_now(), blocks(config));
    comm->ranks.ctas = most_ctas(config);
    return queue_make((struct made){.comm = comm,
                                    .out = out,
                                    .name = name,
                                    .id = id,
                                    .rank = rank,
                                    .nranks = nranks});
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    NCCL_CALL;
    return in_group(init_rank(comm, nranks, id, rank, NULL, __func__));
}

static ncclResult_t check_config(const char *name, const ncclConfig_t *config) {
    if (!config)
        return ncclSuccess;
    if (config->magic != 0xcafebeef)
        return nccl_error(ncclInvalidArgument,
                          "%s: config was not set to NCCL_CONFIG_INITIALIZER", name);
    if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
        config->blocking != 1)
        return nccl_error(ncclInvalidArgument, "%s: config.blocking is %d, not 0 or 1",
                          name, config->blocking);
    int least = config->minCTAs, most = config->maxCTAs;
    bool has_least = least != NCCL_CONFIG_UNDEF_INT;
    bool has_most = most != NCCL_CONFIG_UNDEF_INT;
    if ((has_least && least <= 0) || (has_most && most <= 0) ||
        (has_least && has_most && least > most))
        return nccl_error(ncclInvalidArgument,
                          "%s: config.minCTAs and config.maxCTAs do not fit", name);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
    NCCL_CALL;
    ncclResult_t result = check_config(__func__, config);
    if (result != ncclSuccess)
        return in_group(result);
    return in_group(init_rank(comm, nranks, id, rank, config, __func__));
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices) {
    NCCL_CALL;
    int count;
    if (!comms || ndev < 1)
        return nccl_error(ncclInvalidArgument, "ncclCommInitAll: %s",
                          comms ? "ndev is less than 1" : "comm is NULL");
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "ncclCommInitAll: no device");
    for (int i = 0; i < ndev; i++) {
        int device = devices ? devices[i] : i;
        if (device < 0 || device >= count)
            return nccl_error(ncclInvalidArgument,
                              "ncclCommInitAll: device %d, and there are %d", device,
                              count);
        for (int j = 0; devices && j < i; j++)
            if (devices[j] == device)
                return nccl_error(ncclInvalidUsage,
                                  "ncclCommInitAll: device %d stands twice in devlist",
                                  device);
    }
    for (int i = 0; i < ndev; i++)
        comms[i] = comm_create(devices ? devices[i] : i, true);
    meet_alone(comms, ndev);
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config) {
    NCCL_CALL;
    CHECK_COMM(comm);
    ncclResult_t result = check_config(__func__, config);
    if (!newcomm)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
    else if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: color is %d", color);
    if (result != ncclSuccess)
        return in_group(result);
    bool wanted = color != NCCL_SPLIT_NOCOLOR;
    bool blocking = config && config->blocking >= 0 ? config->blocking : comm->blocking;
    struct ncclComm *made = wanted ? comm_create(comm->device, blocking) : NULL;
    if (made)
        made->ranks.ctas = config ? most_ctas(config) : comm->ranks.ctas;
    return in_group(queue_make((struct made){.comm = made,
                                             .out = newcomm,
                                             .name = __func__,
                                             .parent = comm,
                                             .color = color,
                                             .key = key}));
}

/* --- Leaving ---------------------------------------------------------------------- */

struct leave_op {
    struct op op;
    struct ncclComm *comm;
};

static bool step_leave(struct op *op) {
    carry_leave(((struct leave_op *)op)->comm, op->start);
    return op->done = true;
}

static void drop_leave(struct op *op) {
    comm_release(((struct leave_op *)op)->comm);
}

/* The other ranks are told when all that is queued with the communicator is done. */
static void finalize(struct ncclComm *comm) {
    struct op *op = op_create(sizeof(struct leave_op), step_leave);
    op->drop = drop_leave;
    ((struct leave_op *)op)->comm = comm;
    comm_hold(comm);
    op_after(op, comm->newest);
    op_enqueue(op, comm->own);
    comm->leaving = stream_end(comm->own);
    comm->finalized = true;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (comm->finalized)
        return nccl_error(ncclInvalidArgument, "ncclCommFinalize: called before");
    finalize(comm);
    if (!comm->blocking)
        return ncclInProgress;
    wait_for(comm->leaving);
    return ncclSuccess;
}

/* NCCL's call is collective among the ranks of a host. The last one of a process waits
 * for those of the others. */
static bool host_has_left(const void *argument) {
    const struct ncclComm *comm = argument;
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && comm->world[r] == wire_world)
            return true;
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && wire_same_host(comm->world[r]) &&
            wire_reaches(comm->world[r]))
            return false;
    return true;
}

static void leave_host(struct ncclComm *comm) {
    wait_until(host_has_left, comm);
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && wire_same_host(comm->world[r]))
            return; // this process has another rank, which will wait
    if (clock_on)
        clock_host_until(comm->left_at);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    NCCL_CALL;
    if (!comm)
        return ncclSuccess; // as NCCL: nothing to do
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    // As on two H200, where it is a matter of time whether anybody has asked.
    if (comm->state == JOINING || (comm->finalized && !comm->blocking && !comm->asked))
        return nccl_error(ncclInvalidArgument, "%s: comm is not ready", __func__);
    if (!comm->finalized)
        finalize(comm);
    comm->destroyed = true;
    if (comm->blocking)
        wait_for(comm->leaving);
    if (comm->blocking && group.depth == 0)
        leave_host(comm);
    comm_release(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    NCCL_CALL;
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    comm->aborted = comm->destroyed = true;
    meet_leave(comm);
    carry_leave(comm, clock_host());
    queue_look();
    comm_release(comm);
    return ncclSuccess;
}

static bool nothing_under_way(const void *argument) {
    const struct ncclComm *comm = argument;
    return is_made(comm) &&
           (comm->blocking || (!comm->splitting && passed(comm->leaving)));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    NCCL_CALL;
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    if (!error)
        return nccl_error(ncclInvalidArgument,
                          "ncclCommGetAsyncError: asyncError is NULL");
    bool over = poll_until(nothing_under_way, comm);
    *error = comm->error != ncclSuccess ? comm->error
             : over                     ? ncclSuccess
                                        : ncclInProgress;
    comm->asked = comm->finalized && *error != ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!count)
        return nccl_error(ncclInvalidArgument, "ncclCommCount: count is NULL");
    *count = comm->nranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!device)
        return nccl_error(ncclInvalidArgument, "ncclCommCuDevice: device is NULL");
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!rank)
        return nccl_error(ncclInvalidArgument, "ncclCommUserRank: rank is NULL");
    *rank = comm->rank;
    return ncclSuccess;
}

/* --- Memory and registration ------------------------------------------------------ */

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
    NCCL_CALL;
    if (!pointer || bytes == 0)
        return nccl_error(ncclInvalidArgument, "ncclMemAlloc: %s",
                          pointer ? "size is 0" : "ptr is NULL");
    cudaError_t error = device_allocate(pointer, bytes, MEMORY_DEVICE);
    if (error != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "ncclMemAlloc: %s",
                          cudaGetErrorString(error));
    struct memory *memory = memory_find(*pointer);
    memory->closed = memory->of_nccl = true;
    return ncclSuccess;
}

/* As on two H200 (NCCL 2.28): what is not its own it leaves, and cudaFree likewise. */
ncclResult_t ncclMemFree(void *pointer) {
    NCCL_CALL;
    struct memory *memory = memory_find(pointer);
    if (pointer && (!memory || memory->user != pointer || !memory->of_nccl))
        return nccl_error(ncclUnhandledCudaError, "ncclMemFree: Cuda failure 1 '%s'",
                          cudaGetErrorString(cudaErrorInvalidValue));
    if (memory)
        memory->of_nccl = false;
    cudaError_t error = cudaFree(pointer);
    return error == cudaSuccess ? ncclSuccess
                                : nccl_error(ncclUnhandledCudaError, "ncclMemFree: %s",
                                             cudaGetErrorString(error));
}

struct registration {
    struct registration *next;
    struct ncclComm *comm;
    bool window;
};
static struct registration *registrations;

static ncclResult_t register_buffer(const char *name, struct ncclComm *comm, void *buffer,
                                    size_t bytes, bool window, void **handle) {
    if (!buffer || bytes == 0 || !handle)
        return nccl_error(ncclInvalidArgument, "%s: %s", name,
                          !buffer  ? "buff is NULL"
                          : handle ? "size is 0"
                                   : "no place for the handle");
    if (!memory_find(buffer))
        return nccl_error(ncclInvalidArgument, "%s: buff is not device memory", name);
    struct registration *registration = must_alloc(sizeof *registration);
    registration->comm = comm;
    registration->window = window;
    registration->next = registrations;
    registrations = registration;
    *handle = registration;
    return ncclSuccess;
}

/* A window is no handle of ncclCommRegister, nor the other way round: seen on an H200
 * (NCCL 2.30), where it is ncclInvalidUsage. */
static ncclResult_t deregister(const char *name, struct ncclComm *comm, void *handle,
                               bool window) {
    for (struct registration **at = &registrations; *at; at = &(*at)->next)
        if (*at == handle && (*at)->comm == comm && (*at)->window == window) {
            struct registration *registration = *at;
            *at = registration->next;
            free(registration);
            return ncclSuccess;
        }
    return nccl_error(ncclInvalidUsage, "%s: not a %s of this communicator", name,
                      window ? "window" : "handle of ncclCommRegister");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle) {
    NCCL_CALL;
    CHECK_COMM(comm);
    return register_buffer(__func__, comm, buffer, bytes, false, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    NCCL_CALL;
    CHECK_COMM(comm);
    return handle ? deregister(__func__, comm, handle, false) : ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (flags & ~NCCL_WIN_COLL_SYMMETRIC)
        return nccl_error(ncclInvalidArgument, "%s: unknown flags %d", __func__, flags);
    // NCCL 2.30.7 says so on an H100; 2.28.3 takes it, at least for one rank.
    if ((uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
        return nccl_error(ncclInvalidArgument,
                          "%s: the address of a window is a multiple of %d"
                          " (NCCL_WIN_REQUIRED_ALIGNMENT), as ncclMemAlloc gives it",
                          __func__, NCCL_WIN_REQUIRED_ALIGNMENT);
    return register_buffer(__func__, comm, buffer, bytes, true, (void **)window);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    NCCL_CALL;
    CHECK_COMM(comm);
    return deregister(__func__, comm, window, true);
}

/* --- Reductions of the program's own ---------------------------------------------- */

/* The real NCCL counts the operators of each communicator from the same number; here no
 * two of a process have the same one, so that one of another communicator is noticed. */
static struct redop *redop_of(const struct ncclComm *comm, ncclRedOp_t op) {
    for (int i = 0; i < comm->nredops; i++)
        if (comm->redops[i].op == (int)op && comm->redops[i].live)
            return &comm->redops[i];
    return NULL;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!op || !scalar)
        return nccl_error(ncclInvalidArgument, "%s: %s is NULL", __func__,
                          op ? "scalar" : "op");
    if ((int)type < 0 || type >= ncclNumTypes ||
        (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
        return nccl_error(ncclInvalidArgument, "%s: unknown data type or residence",
                          __func__);
    if (residence == ncclScalarDevice && !memory_find(scalar))
        return nccl_error(ncclInvalidArgument, "%s: scalar is not device memory",
                          __func__);
    static int newest = ncclNumOps - 1;
    int i = 0;
    while (i < comm->nredops && comm->redops[i].live)
        i++;
    if (i == comm->nredops) {
        comm->redops = must_grow(comm->redops, (size_t)(i + 1) * sizeof *comm->redops);
        comm->nredops++;
    }
    comm->redops[i] =
        (struct redop){++newest, true, type, residence == ncclScalarDevice, {0}, scalar};
    if (!comm->redops[i].on_device)
        memcpy(comm->redops[i].value, scalar, type_size(type));
    *op = (ncclRedOp_t)newest;
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    struct redop *redop = redop_of(comm, op);
    if (!redop)
        return nccl_error(ncclInvalidArgument,
                          "%s: not an operator made for this"
                          " communicator",
                          __func__);
    redop->live = false;
    return ncclSuccess;
}

/* --- Collectives and point to point ----------------------------------------------- */

static ncclResult_t check_op(struct call *call, const char *name, ncclRedOp_t op,
                             ncclDataType_t type) {
    struct ncclComm *comm = call->comm;
    const struct redop *redop = redop_of(comm, op);
    if ((int)op < 0 || (op >= ncclNumOps && !redop))
        return nccl_error(ncclInvalidArgument,
                          (int)op < 0
                              ? "%s: op %d is no reduction"
                              : "%s: op %d is none that was made for this communicator",
                          name, (int)op);
    call->facts.redop = op;
    if (!redop)
        return ncclSuccess;
    if (redop->type != type)
        return nccl_error(ncclInvalidArgument,
                          "%s: op was made for data type %d, the data is %d", name,
                          (int)redop->type, (int)type);
    call->facts.redop = PRE_MUL_SUM;
    memcpy(call->scalar, redop->value, sizeof call->scalar);
    if (redop->on_device)
        call->device_scalar = redop->scalar;
    return ncclSuccess;
}

static bool reduction(int kind) {
    return kind == CALL_ALL_REDUCE || kind == CALL_REDUCE || kind == CALL_REDUCE_SCATTER;
}

static bool rooted(int kind) {
    return kind == CALL_BROADCAST || kind == CALL_REDUCE || kind == CALL_GATHER ||
           kind == CALL_SCATTER || point_to_point(kind);
}

/* What all calls have in common. `name` is the one the program used. */
static ncclResult_t collective(int kind, const char *name, const void *sendbuff,
                               void *recvbuff, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm,
                               cudaStream_t handle) {
    ncclResult_t result = check_comm(name, comm);
    if (result != ncclSuccess)
        return in_group(result);
    for (int r = 0; r < comm->nranks; r++)
        if (!wire_reaches(comm->world[r]))
            fail("rank %d on %s: %s comes after MPI_Finalize. The real NCCL would go on; "
                 "here"
                 " MPI carries its calls.",
                 wire_world, hosts_name(), name);
    struct stream *stream = stream_of(handle, comm->device);
    if (!stream)
        result = nccl_error(ncclInvalidArgument, "%s: stream is not a stream", name);
    else if (comm->finalized)
        result = nccl_error(ncclInvalidUsage, "%s: comm was finalized", name);
    else if ((int)type < 0 || type >= ncclNumTypes)
        result =
            nccl_error(ncclInvalidArgument, "%s: %d is no data type", name, (int)type);
    else if (rooted(kind) && (root < 0 || root >= comm->nranks))
        result =
            nccl_error(ncclInvalidArgument,
                       "%s: %s %d, and the communicator has %d"
                       " ranks",
                       name, point_to_point(kind) ? "peer" : "root", root, comm->nranks);
    else if (capture_in_the_way(stream) || device_broken(comm->device) != cudaSuccess)
        result = nccl_error(ncclUnhandledCudaError, "%s: %s", name,
                            cudaGetErrorString(device_broken(comm->device)
                                                   ? device_broken(comm->device)
                                                   : cudaErrorStreamCaptureImplicit));
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, kind);
    call->facts.type = type;
    call->facts.count = count;
    call->facts.root = rooted(kind) ? root : -1;
    call->sendbuff = sendbuff;
    call->recvbuff = recvbuff;
    if (reduction(kind))
        result = check_op(call, name, op, type);
    size_t out = call_send_bytes(call), in = call_recv_bytes(call);
    if (result == ncclSuccess && ((out && !sendbuff) || (in && !recvbuff)))
        result = nccl_error(ncclInvalidArgument, "%s: %s is NULL", name,
                            out && !sendbuff ? "sendbuff" : "recvbuff");
    // As in NCCL, a collective of nothing is none.
    if (result != ncclSuccess || (count == 0 && !point_to_point(kind))) {
        call_release(call);
        return in_group(result);
    }
    return in_group(queue_call(call, stream));
}

#define COLLECTIVE(kind, send, recv, count, type, op, root) \
    NCCL_CALL;                                              \
    return collective(kind, __func__, send, recv, count, type, op, root, comm, stream)

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
    COLLECTIVE(CALL_BROADCAST, sendbuff, recvbuff, count, type, ncclSum, root);
}

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
    COLLECTIVE(CALL_BROADCAST, buff, buff, count, type, ncclSum, root);
}

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
    COLLECTIVE(CALL_ALL_REDUCE, sendbuff, recvbuff, count, type, op, 0);
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
    COLLECTIVE(CALL_REDUCE, sendbuff, recvbuff, count, type, op, root);
}

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
    COLLECTIVE(CALL_REDUCE_SCATTER, sendbuff, recvbuff, recvcount, type, op, 0);
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    COLLECTIVE(CALL_ALL_GATHER, sendbuff, recvbuff, sendcount, type, ncclSum, 0);
}

ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    COLLECTIVE(CALL_ALL_TO_ALL, sendbuff, recvbuff, count, type, ncclSum, 0);
}

ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
    COLLECTIVE(CALL_GATHER, sendbuff, recvbuff, count, type, ncclSum, root);
}

ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
    COLLECTIVE(CALL_SCATTER, sendbuff, recvbuff, count, type, ncclSum, root);
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    COLLECTIVE(CALL_SEND, sendbuff, NULL, count, type, ncclSum, peer);
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    COLLECTIVE(CALL_RECV, NULL, recvbuff, count, type, ncclSum, peer);
}
