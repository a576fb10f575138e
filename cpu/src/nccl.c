/*
 * nccl.c: NCCL's calls. Arguments are checked as NCCL checks them and the work is queued;
 * it happens when a wait advances the stream.
 * NCCL User Guide, "NCCL API".
 */
#include "internal.h"

struct ncclComm *communicators;
static __thread char last_error[512];

/* --- Errors ----------------------------------------------------------------------- */

ncclResult_t nccl_error(ncclResult_t result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    snprintf(library.failure, sizeof library.failure, "%.95s", last_error);
    library.failed_at = called_from;
    return result;
}

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
    return last_error;
}

ncclResult_t ncclGetVersion(int *version) {
    if (!version)
        return nccl_error(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* --- Communicators ---------------------------------------------------------------- */

struct ncclComm *comm_by_id(uint64_t id) {
    for (struct ncclComm *comm = communicators; comm; comm = comm->next)
        if (comm->id == id && !comm->clique)
            return comm;
    return NULL;
}

struct ncclComm *comm_create(uint64_t id, int rank, int nranks, const int *world,
                             int device, const char *maker, void *site) {
    static int number;
    struct ncclComm *comm = must_alloc(sizeof *comm);
    comm->id = id;
    struct ncclComm *same = communicators;
    while (same && same->id != id) // another rank of it in this process
        same = same->next;
    comm->number = same ? same->number : ++number;
    comm->rank = rank;
    comm->nranks = nranks;
    comm->device = device;
    comm->maker = maker;
    comm->site = site;
    comm->mpi = MPI_COMM_NULL;
    comm->world = must_alloc((size_t)nranks * sizeof *comm->world);
    memcpy(comm->world, world, (size_t)nranks * sizeof *world);
    comm->left = must_alloc((size_t)nranks * sizeof *comm->left);
    comm->sends = must_alloc((size_t)nranks * sizeof *comm->sends);
    comm->receives = must_alloc((size_t)nranks * sizeof *comm->receives);
    comm->next = communicators;
    communicators = comm;
    return comm;
}

/* NULL, a stranger, or a communicator that is no more: ncclInvalidArgument. */
static ncclResult_t check_comm(const char *name, const struct ncclComm *comm,
                               void *site) {
    struct ncclComm *known = communicators;
    while (known && known != comm)
        known = known->next;
    if (!known)
        return nccl_error(ncclInvalidArgument, "%s: %s", name,
                          comm ? "comm is not a communicator" : "comm is NULL");
    if (!known->destroyed)
        return ncclSuccess;
    if (library.check != CHECK_OFF) {
        char where[256], ended[256], made[256];
        struct text text = {0};
        text_add(&text,
                 "setup: %s uses a communicator after it was %s\n"
                 "  rank %d on %s: %s at %s\n"
                 "  communicator %d, made by %s at %s, was %s at %s\n"
                 "  Hint: the real NCCL reads freed memory here.\n",
                 name, comm->aborted ? "aborted" : "destroyed", library.world,
                 library.host, name, site_text(where, site), comm->number, comm->maker,
                 site_text(made, comm->site), comm->aborted ? "aborted" : "destroyed",
                 site_text(ended, comm->end_site));
        report(&text, true);
    }
    return nccl_error(ncclInvalidArgument, "%s: comm was destroyed", name);
}

#define CHECK_COMM(comm)                                               \
    do {                                                               \
        ncclResult_t comm_result = check_comm(__func__, comm, CALLER); \
        if (comm_result != ncclSuccess)                                \
            return comm_result;                                        \
    } while (0)

/* --- Groups ----------------------------------------------------------------------- */

static __thread struct {
    int depth;
    void *site;
    struct call *first, *last;
    struct init *inits;
    struct split *splits;
    ncclResult_t error;
} group;

int group_open(struct stream *stream, void **site, struct call **first, int *ncalls) {
    *site = group.site;
    *first = NULL;
    *ncalls = 0;
    for (struct call *call = group.first; call; call = call->next)
        if (!stream || call->stream == stream) {
            *first = *first ? *first : call;
            (*ncalls)++;
        }
    return group.depth;
}

struct call *call_create(struct ncclComm *comm, int kind, void *site) {
    struct call *call = must_alloc(sizeof *call);
    call->comm = comm;
    call->site = site;
    call->facts.comm = comm->id;
    call->facts.rank = comm->rank;
    call->facts.world = comm->world[comm->rank];
    call->facts.kind = kind;
    call->facts.site = site_offset(site);
    call->facts.device = comm->device;
    call->facts.together = comm->clique && comm->nranks > 1;
    memcpy(call->facts.host, library.host, sizeof call->facts.host - 1);
    return call;
}

struct call *call_copy(const struct call *from) {
    struct call *call = call_create(from->comm, from->facts.kind, from->site);
    call->facts = from->facts;
    call->sendbuff = from->sendbuff;
    call->recvbuff = from->recvbuff;
    memcpy(call->scalar, from->scalar, sizeof call->scalar);
    call->device_scalar = from->device_scalar;
    return call;
}

void call_number(struct call *call) {
    struct ncclComm *comm = call->comm;
    struct facts *f = &call->facts;
    f->index = ++comm->calls;
    f->seq = f->kind == CALL_SEND   ? ++comm->sends[f->root]
             : f->kind == CALL_RECV ? ++comm->receives[f->root]
                                    : ++comm->collectives;
}

/* Queues the calls of a group: one operation on each stream that they name. */
static void launch(struct call *calls) {
    static _Atomic uint64_t threads;
    static __thread uint64_t batch; // above, the thread's number
    batch = batch ? batch + 1 : ++threads << 32;
    struct stream *used[64];
    struct op *ops[64];
    int n = 0;
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        call->next = NULL;
        struct stream *stream = call->stream;
        if (!stream->capturing)
            call_number(call);
        if (!stream->capturing && call->comm->all_at_once &&
            !point_to_point(call->facts.kind)) {
            check_one_by_one(call, batch);
            call->comm->batch = batch;
        }
        int i = 0;
        while (i < n && used[i] != stream)
            i++;
        if (i == n) {
            if (n == 64) { // more streams than anybody has: in several operations
                for (int k = 0; k < n; k++)
                    op_enqueue(ops[k], used[k]);
                n = i = 0;
            }
            used[n] = stream;
            ops[n++] = op_create(OP_NCCL, kind_name(call->facts.kind), call->site);
        }
        struct call **end = &ops[i]->calls;
        while (*end)
            end = &(*end)->next;
        *end = call;
        op_range(ops[i], call->sendbuff, call_send_bytes(call), false, call);
        op_range(ops[i], call->recvbuff, call_recv_bytes(call), true, call);
        if (call->device_scalar)
            op_range(ops[i], call->device_scalar, type_size(call->facts.type), false,
                     call);
    }
    for (int i = 0; i < n; i++) {
        check_group_race(ops[i]);
        op_enqueue(ops[i], used[i]);
    }
}

static ncclResult_t queue_call(struct call *call, struct stream *stream) {
    call->stream = stream;
    if (group.depth == 0) {
        launch(call);
        return ncclSuccess;
    }
    if (group.last)
        group.last->next = call;
    else
        group.first = call;
    group.last = call;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    PUBLIC_CALL;
    if (group.depth++ == 0)
        group.site = CALLER;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    PUBLIC_CALL;
    if (group.depth == 0)
        return nccl_error(ncclInvalidUsage, "ncclGroupEnd: no ncclGroupStart before it");
    if (--group.depth > 0)
        return ncclSuccess;
    struct call *calls = group.first;
    struct init *inits = group.inits;
    struct split *splits = group.splits;
    ncclResult_t result = group.error;
    group.first = group.last = NULL;
    group.inits = NULL;
    group.splits = NULL;
    group.error = ncclSuccess;
    if (inits) {
        ncclResult_t joined = setup_join(inits);
        result = result == ncclSuccess ? joined : result;
    }
    if (splits) {
        ncclResult_t split = setup_split(splits);
        result = result == ncclSuccess ? split : result;
    }
    if (result == ncclSuccess) {
        launch(calls);
        return ncclSuccess;
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
    if (result != ncclSuccess && group.depth > 0 && group.error == ncclSuccess)
        group.error = result;
    return result;
}

/* --- Joining and leaving ---------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    PUBLIC_CALL;
    if (!id)
        return nccl_error(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    return setup_unique_id(id);
}

static ncclResult_t init_rank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank,
                              const char *name, void *site) {
    if (!out)
        return nccl_error(ncclInvalidArgument, "%s: comm is NULL", name);
    *out = NULL;
    struct text text = {0};
    char where[256];
    if (nranks < 1 || rank < 0 || rank >= nranks) {
        if (library.check != CHECK_OFF && nranks >= 1) {
            text_add(&text,
                     "setup: rank %d is outside the communicator\n"
                     "  rank %d on %s: %s(rank %d of %d ranks) at %s\n"
                     "  Hint: ranks count from 0 to %d here. NCCL returns"
                     " ncclInvalidArgument.\n",
                     rank, library.world, library.host, name, rank, nranks,
                     site_text(where, site), nranks - 1);
            report(&text, true);
        }
        return nccl_error(ncclInvalidArgument, "%s: rank %d of %d ranks", name, rank,
                          nranks);
    }
    uint64_t number;
    int creator, device, count;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "%s: no device", name);
    cudaGetDevice(&device);
    if (!setup_read_id(&id, &number, &creator)) {
        if (library.check != CHECK_OFF) {
            text_add(
                &text,
                "setup: the unique id is not one that ncclGetUniqueId made\n"
                "  rank %d on %s: %s(rank %d of %d ranks) at %s\n"
                "  Hint: one rank calls ncclGetUniqueId, and MPI_Bcast brings it to"
                " all the others\n"
                "        before ncclCommInitRank. The real NCCL fails or hangs here.\n",
                library.world, library.host, name, rank, nranks, site_text(where, site));
            report(&text, true);
        }
        return nccl_error(ncclInvalidArgument,
                          "%s: commId was not made by ncclGetUniqueId", name);
    }
    struct init *init = must_alloc(sizeof *init);
    *init = (struct init){.out = out,
                          .id = number,
                          .creator = creator,
                          .rank = rank,
                          .nranks = nranks,
                          .device = device,
                          .name = name,
                          .site = site};
    if (group.depth == 0)
        return setup_join(init);
    init->next = group.inits;
    group.inits = init;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    PUBLIC_CALL;
    return in_group(init_rank(comm, nranks, id, rank, "ncclCommInitRank", CALLER));
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
    PUBLIC_CALL;
    ncclResult_t result = check_config(__func__, config);
    if (result != ncclSuccess)
        return in_group(result);
    return in_group(init_rank(comm, nranks, id, rank, "ncclCommInitRankConfig", CALLER));
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices) {
    PUBLIC_CALL;
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
    static uint64_t made;
    int *world = must_alloc((size_t)ndev * sizeof *world);
    for (int i = 0; i < ndev; i++)
        world[i] = library.world;
    struct clique *clique = must_alloc(sizeof *clique);
    clique->nranks = ndev;
    uint64_t id = 0xa11ull << 48 | (uint64_t)library.world << 24 | ++made;
    for (int i = 0; i < ndev; i++) {
        comms[i] = comm_create(id, i, ndev, world, devices ? devices[i] : i,
                               "ncclCommInitAll", CALLER);
        comms[i]->clique = clique;
        comms[i]->all_at_once = ndev > 1;
    }
    free(world);
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    ncclResult_t result = check_config(__func__, config);
    if (!newcomm)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
    else if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: color is %d", color);
    if (result != ncclSuccess)
        return in_group(result);
    *newcomm = NULL;
    struct split *split = must_alloc(sizeof *split);
    *split = (struct split){
        .comm = comm, .out = newcomm, .color = color, .key = key, .site = CALLER};
    if (group.depth == 0)
        return setup_split(split);
    struct split **end = &group.splits;
    while (*end)
        end = &(*end)->next;
    *end = split;
    return ncclSuccess;
}

/* Waits for all that is queued on the communicator; the host has seen it then. */
static void flush(struct ncclComm *comm, const char *name, void *site) {
    for (int s = 0; s < nstreams; s++) {
        uint64_t last = 0;
        for (struct op *op = streams[s] ? streams[s]->first : NULL; op; op = op->next)
            for (struct call *call = op->calls; call; call = call->next)
                if (call->comm == comm)
                    last = op->seq;
        if (!last)
            continue;
        wait_until(streams[s], last, name, site);
        if (last > seen[s])
            seen[s] = last;
    }
    forget_seen();
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (comm->finalized)
        return nccl_error(ncclInvalidArgument, "ncclCommFinalize: called before");
    flush(comm, "ncclCommFinalize", CALLER);
    comm_leave(comm);
    comm->finalized = true;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    PUBLIC_CALL;
    if (!comm)
        return ncclSuccess; // as NCCL: nothing to do
    CHECK_COMM(comm);
    if (!comm->finalized) {
        check_unfinished("ncclCommDestroy", CALLER, comm);
        flush(comm, "ncclCommDestroy", CALLER);
    }
    comm_leave(comm);
    if (group.depth == 0 && comm_remains(comm, 0) >= 0) {
        struct wait wait = {.comm = comm};
        wait_begin(&wait, WAIT_LEAVE, "ncclCommDestroy", CALLER);
        while (comm_remains(comm, 0) >= 0)
            wait_tick(&wait, progress());
        wait_end(&wait);
    }
    if (!comm->scratch_lent) {
        free(comm->scratch);
        comm->scratch = NULL;
        comm->scratch_bytes = 0;
    }
    comm->destroyed = true;
    comm->end_site = CALLER;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    PUBLIC_CALL;
    if (!comm)
        return ncclSuccess;
    CHECK_COMM(comm);
    comm->aborted = true;
    advance();
    flush(comm, "ncclCommAbort", CALLER);
    comm_leave(comm);
    comm->destroyed = true;
    comm->end_site = CALLER;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (!error)
        return nccl_error(ncclInvalidArgument,
                          "ncclCommGetAsyncError: asyncError is NULL");
    *error = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (!count)
        return nccl_error(ncclInvalidArgument, "ncclCommCount: count is NULL");
    *count = comm->nranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (!device)
        return nccl_error(ncclInvalidArgument, "ncclCommCuDevice: device is NULL");
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (!rank)
        return nccl_error(ncclInvalidArgument, "ncclCommUserRank: rank is NULL");
    *rank = comm->rank;
    return ncclSuccess;
}

/* --- Memory and registration ------------------------------------------------------ */

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
    PUBLIC_CALL;
    if (!pointer || bytes == 0)
        return nccl_error(ncclInvalidArgument, "ncclMemAlloc: %s",
                          pointer ? "size is 0" : "ptr is NULL");
    cudaError_t error = memory_create(pointer, bytes, MEMORY_DEVICE, CALLER);
    if (error != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "ncclMemAlloc: %s",
                          cudaGetErrorString(error));
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer) {
    PUBLIC_CALL;
    if (cudaFree(pointer) == cudaSuccess)
        return ncclSuccess;
    return nccl_error(ncclInvalidArgument, "ncclMemFree: not an address of ncclMemAlloc");
}

struct registration {
    struct registration *next;
    struct ncclComm *comm;
};
static struct registration *registrations;

static ncclResult_t register_buffer(const char *name, struct ncclComm *comm, void *buffer,
                                    size_t bytes, void **handle) {
    if (!buffer || bytes == 0 || !handle)
        return nccl_error(ncclInvalidArgument, "%s: %s", name,
                          !buffer  ? "buff is NULL"
                          : handle ? "size is 0"
                                   : "no place for the handle");
    if (!memory_find(buffer))
        return nccl_error(ncclInvalidArgument, "%s: buff is not device memory", name);
    struct registration *registration = must_alloc(sizeof *registration);
    registration->comm = comm;
    registration->next = registrations;
    registrations = registration;
    *handle = registration;
    return ncclSuccess;
}

static ncclResult_t deregister(const char *name, struct ncclComm *comm, void *handle) {
    for (struct registration **at = &registrations; *at; at = &(*at)->next)
        if (*at == handle && (*at)->comm == comm) {
            struct registration *registration = *at;
            *at = registration->next;
            free(registration);
            return ncclSuccess;
        }
    return nccl_error(ncclInvalidArgument, "%s: not a handle of this communicator", name);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    return register_buffer(__func__, comm, buffer, bytes, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    return deregister(__func__, comm, handle);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    if (flags & ~NCCL_WIN_COLL_SYMMETRIC)
        return nccl_error(ncclInvalidArgument, "%s: unknown flags %d", __func__, flags);
    return register_buffer(__func__, comm, buffer, bytes, (void **)window);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    return deregister(__func__, comm, window);
}

/* --- Reductions of the program's own ---------------------------------------------- */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
    PUBLIC_CALL;
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
    int i = 0;
    while (i < comm->nredops && comm->redops[i].live)
        i++;
    if (i == comm->nredops) {
        comm->redops = must_grow(comm->redops, (size_t)(i + 1) * sizeof *comm->redops);
        comm->nredops++;
    }
    comm->redops[i] =
        (struct redop){true, type, residence == ncclScalarDevice, {0}, scalar};
    if (!comm->redops[i].on_device)
        memcpy(comm->redops[i].value, scalar, type_size(type));
    *op = (ncclRedOp_t)(ncclNumOps + i);
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    PUBLIC_CALL;
    CHECK_COMM(comm);
    int i = (int)op - ncclNumOps;
    if (i < 0 || i >= comm->nredops || !comm->redops[i].live)
        return nccl_error(ncclInvalidArgument,
                          "%s: not an operator made for this"
                          " communicator",
                          __func__);
    comm->redops[i].live = false;
    return ncclSuccess;
}

/* --- Collectives and point to point ----------------------------------------------- */

static ncclResult_t check_op(struct call *call, const char *name, ncclRedOp_t op,
                             ncclDataType_t type) {
    struct ncclComm *comm = call->comm;
    int i = (int)op - ncclNumOps;
    if ((int)op < 0 || (i >= 0 && (i >= comm->nredops || !comm->redops[i].live)))
        return nccl_error(ncclInvalidArgument, "%s: op %d is no reduction", name,
                          (int)op);
    call->facts.redop = op;
    if (i < 0)
        return ncclSuccess;
    if (comm->redops[i].type != type)
        return nccl_error(ncclInvalidArgument, "%s: op was made for %s, the data is %s",
                          name, type_name(comm->redops[i].type), type_name(type));
    call->facts.redop = PRE_MUL_SUM;
    memcpy(call->scalar, comm->redops[i].value, sizeof call->scalar);
    if (comm->redops[i].on_device)
        call->device_scalar = comm->redops[i].scalar;
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
                               cudaStream_t handle, void *site) {
    ncclResult_t result = check_comm(name, comm, site);
    if (result != ncclSuccess)
        return in_group(result);
    if (library.over && !library.mpi && !comm->clique)
        check_too_late(name, site);
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
    else if (count > INT32_MAX)
        result =
            nccl_error(ncclInvalidArgument,
                       "%s: %zu elements; the CPU build carries at most %d in one call",
                       name, count, INT32_MAX);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, kind, site);
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
    if (result == ncclSuccess && library.check != CHECK_OFF) {
        if ((out && check_nccl_buffer(call, "sendbuff", sendbuff, out)) ||
            (in && check_nccl_buffer(call, "recvbuff", recvbuff, in)) ||
            (out && in && check_overlap(call)))
            result = nccl_error(ncclInvalidArgument, "%s: a buffer is not usable", name);
    }
    if (result != ncclSuccess) {
        call_release(call);
        return in_group(result);
    }
    return queue_call(call, stream);
}

#define COLLECTIVE(kind, send, recv, count, type, op, root)                            \
    PUBLIC_CALL;                                                                       \
    return collective(kind, __func__, send, recv, count, type, op, root, comm, stream, \
                      CALLER)

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
