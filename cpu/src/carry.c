/*
 * carry.c: how the data of a call gets where it belongs.
 *
 * Every rank announces a call to the ranks it works with when the call has come to the
 * head of its stream. Small data comes with the announcement; larger data goes in
 * messages of its own, at the same time. The call is done when the data is there and all
 * have announced the same. Ranks that all live in this process are served by plain
 * copies.
 *
 * NCCL User Guide, "Collective Operations"; MPI Standard, "Nonblocking Communication".
 */
#include "internal.h"

enum { INLINE_BYTES = 1024 };

static bool reduces(int kind) {
    return kind == CALL_ALL_REDUCE || kind == CALL_REDUCE || kind == CALL_REDUCE_SCATTER;
}

/* Bytes of `count` elements as they are in the buffers, and as they travel. */
static size_t raw_bytes(const struct call *call) {
    return call->facts.count * type_size(call->facts.type);
}

static size_t travel_bytes(const struct call *call) {
    if (call->facts.kind == CALL_SPLIT)
        return sizeof call->split;
    int type = call->facts.type;
    return call->facts.count *
           type_size(reduces(call->facts.kind) ? carry_type(type) : type);
}

static bool travels_inline(const struct call *call) {
    return travel_bytes(call) <= INLINE_BYTES;
}

size_t call_send_bytes(const struct call *call) {
    const struct facts *f = &call->facts;
    size_t one = raw_bytes(call), all = one * (size_t)call->comm->nranks;
    switch (f->kind) {
    case CALL_BROADCAST: return f->rank == f->root ? one : 0;
    case CALL_REDUCE_SCATTER:
    case CALL_ALL_TO_ALL: return all;
    case CALL_SCATTER: return f->rank == f->root ? all : 0;
    case CALL_RECV:
    case CALL_SPLIT: return 0;
    default: return one;
    }
}

size_t call_recv_bytes(const struct call *call) {
    const struct facts *f = &call->facts;
    size_t one = raw_bytes(call), all = one * (size_t)call->comm->nranks;
    switch (f->kind) {
    case CALL_ALL_GATHER:
    case CALL_ALL_TO_ALL: return all;
    case CALL_REDUCE: return f->rank == f->root ? one : 0;
    case CALL_GATHER: return f->rank == f->root ? all : 0;
    case CALL_SEND:
    case CALL_SPLIT: return 0;
    default: return one;
    }
}

/* Whether this rank has data for `peer`, and where it lies among what it brings. */
static bool brings(const struct call *call, int peer, size_t *offset) {
    const struct facts *f = &call->facts;
    size_t bytes = travel_bytes(call);
    *offset = 0;
    switch (f->kind) {
    case CALL_BROADCAST: return f->rank == f->root;
    case CALL_REDUCE:
    case CALL_GATHER:
    case CALL_SEND: return peer == f->root;
    case CALL_REDUCE_SCATTER:
    case CALL_ALL_TO_ALL: *offset = bytes * (size_t)peer; return true;
    case CALL_SCATTER: *offset = bytes * (size_t)peer; return f->rank == f->root;
    case CALL_RECV: return false;
    default: return true;
    }
}

/* Sets call->contribution to what this rank brings, ready to be added up or sent. */
static const void *contribution(struct call *call) {
    if (call->contribution)
        return call->contribution;
    const struct facts *f = &call->facts;
    if (f->kind == CALL_SPLIT)
        return call->split;
    if (call->device_scalar)
        memcpy(call->scalar, shadow(call->device_scalar), type_size(f->type));
    const void *from = shadow(call->sendbuff);
    if (!reduces(f->kind) || (carry_type(f->type) == f->type && f->redop != PRE_MUL_SUM))
        return from;
    size_t n =
        f->count * (f->kind == CALL_REDUCE_SCATTER ? (size_t)call->comm->nranks : 1);
    call->contribution = must_grow(NULL, n * type_size(carry_type(f->type)) + 1);
    to_carry(call->contribution, from, n, f->type, f->redop, call->scalar);
    return call->contribution;
}

/* The announced calls that this one is listed with. */
static struct call **list_of(struct call *call) {
    return call->comm->clique ? &call->comm->clique->waiting : &call->comm->running;
}

static void list(struct call *call) {
    call->next_waiting = *list_of(call);
    *list_of(call) = call;
}

static void unlist(struct call *call) {
    struct call **at = list_of(call);
    while (*at && *at != call)
        at = &(*at)->next_waiting;
    if (*at)
        *at = call->next_waiting;
}

void call_release(struct call *call) {
    if (call->comm)
        unlist(call);
    free(call->heard);
    free(call->theirs);
    if (call->payloads && call->payloads == call->comm->scratch)
        call->comm->scratch_lent = false;
    else
        free(call->payloads);
    free(call->contribution);
    free(call->result);
    free(call->requests);
    free(call);
}

/* --- All ranks in this process ---------------------------------------------------- */

static bool same_collective(const struct call *a, const struct call *b) {
    return !point_to_point(a->facts.kind) && !point_to_point(b->facts.kind) &&
           a->facts.seq == b->facts.seq;
}

static bool partners(const struct facts *a, const struct facts *b) {
    return ((a->kind == CALL_SEND && b->kind == CALL_RECV) ||
            (a->kind == CALL_RECV && b->kind == CALL_SEND)) &&
           a->root == b->rank && b->root == a->rank && a->seq == b->seq;
}

/* The result of a reduction over calls[0..n), elements [first, first + count). */
static void *reduce_here(struct call **calls, int n, size_t first, size_t count) {
    int type = carry_type(calls[0]->facts.type);
    size_t bytes = count * type_size(type), skip = first * type_size(type);
    char *total = must_grow(NULL, bytes + 1);
    memcpy(total, (const char *)contribution(calls[0]) + skip, bytes);
    for (int r = 1; r < n; r++)
        reduce_into(total, (const char *)contribution(calls[r]) + skip, count, type,
                    calls[0]->facts.redop);
    return total;
}

/* calls[r] is rank r's; all results are made before any is written, so that in place is
 * as good as out of place. */
static void carry_here(struct call **calls, int n) {
    const struct facts *f = &calls[0]->facts;
    size_t bytes = raw_bytes(calls[0]), count = f->count;
    char **results = must_alloc((size_t)n * sizeof *results);
    switch (f->kind) {
    case CALL_SPLIT:
        for (int r = 0; r < n; r++) {
            calls[r]->payloads = must_alloc((size_t)n * sizeof calls[r]->split);
            for (int p = 0; p < n; p++)
                memcpy(calls[r]->payloads + (size_t)p * sizeof calls[r]->split,
                       calls[p]->split, sizeof calls[p]->split);
        }
        break;
    case CALL_ALL_REDUCE:
    case CALL_REDUCE:
        results[0] = reduce_here(calls, n, 0, count);
        for (int r = 0; r < n; r++)
            if (f->kind == CALL_ALL_REDUCE || r == f->root)
                from_carry(shadow(calls[r]->recvbuff), results[0], count, f->type,
                           f->redop, n);
        break;
    case CALL_REDUCE_SCATTER:
        for (int r = 0; r < n; r++)
            results[r] = reduce_here(calls, n, (size_t)r * count, count);
        for (int r = 0; r < n; r++)
            from_carry(shadow(calls[r]->recvbuff), results[r], count, f->type, f->redop,
                       n);
        break;
    default:
        for (int r = 0; r < n; r++) {
            size_t out = call_recv_bytes(calls[r]);
            if (out == 0)
                continue;
            char *to = results[r] = must_grow(NULL, out);
            for (int p = 0; p < n; p++) {
                size_t offset;
                if (brings(calls[p], r, &offset) &&
                    (f->kind != CALL_BROADCAST || p == f->root)) {
                    memcpy(to, (const char *)shadow(calls[p]->sendbuff) + offset, bytes);
                    to += bytes;
                }
            }
        }
        for (int r = 0; r < n; r++)
            if (results[r])
                memcpy(shadow(calls[r]->recvbuff), results[r], call_recv_bytes(calls[r]));
    }
    for (int r = 0; r < n; r++)
        free(results[r]);
    free(results);
}

static bool advance_here(struct call *call) {
    struct clique *clique = call->comm->clique;
    const struct facts *f = &call->facts;
    if (point_to_point(f->kind)) {
        for (struct call *other = clique->waiting; other; other = other->next_waiting)
            if (other->state == CALL_ANNOUNCED && partners(f, &other->facts)) {
                if (library.check != CHECK_OFF && !facts_agree(f, &other->facts))
                    check_pair(f, &other->facts);
                struct call *to = f->kind == CALL_RECV ? call : other;
                struct call *from = to == call ? other : call;
                size_t bytes =
                    raw_bytes(to) < raw_bytes(from) ? raw_bytes(to) : raw_bytes(from);
                if (bytes)
                    memmove(shadow(to->recvbuff), shadow(from->sendbuff), bytes);
                to->state = from->state = CALL_DONE;
                return true;
            }
        return false;
    }
    int n = clique->nranks, here = 0;
    struct call **calls = must_alloc((size_t)n * sizeof *calls);
    bool agree = true;
    for (struct call *other = clique->waiting; other; other = other->next_waiting)
        if (other->state == CALL_ANNOUNCED && same_collective(call, other)) {
            agree &= facts_agree(f, &other->facts);
            here += !calls[other->facts.rank];
            calls[other->facts.rank] = other;
        }
    if (!agree && library.check != CHECK_OFF) {
        struct facts *all = must_alloc((size_t)n * sizeof *all);
        bool *have = must_alloc((size_t)n);
        for (int r = 0; r < n; r++)
            if ((have[r] = calls[r] != NULL))
                all[r] = calls[r]->facts;
        check_mismatch(all, have, n);
    }
    if (here == n) {
        carry_here(calls, n);
        for (int r = 0; r < n; r++)
            calls[r]->state = CALL_DONE;
    }
    free(calls);
    return here == n;
}

/* --- Announcements ---------------------------------------------------------------- */

bool call_talks(const struct call *call, int r) {
    const struct facts *f = &call->facts;
    if (point_to_point(f->kind) || r == f->rank)
        return point_to_point(f->kind) && r == f->root;
    // All who get data from one another: with a root, that is the root and each of the
    // others. But a large reduce is added up by all, in parts.
    bool rooted = f->root >= 0 && (f->kind != CALL_REDUCE || travels_inline(call));
    return !rooted || f->rank == f->root || r == f->root;
}

void call_announce(struct call *call) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    bool pair = point_to_point(f->kind);
    call->state = CALL_ANNOUNCED;
    if (!pair) {
        comm->started = f->seq;
        comm->history[f->seq % HISTORY] = *f;
    }
    if (!pair || comm->clique)
        list(call);
    if (comm->clique)
        return;
    bool with_data = travels_inline(call);
    if (library.check == CHECK_OFF && !with_data)
        return; // nobody listens
    size_t bytes = travel_bytes(call), offset;
    const char *mine = with_data ? contribution(call) : NULL;
    call->heard = must_alloc((size_t)comm->nranks);
    if (!pair && library.check != CHECK_OFF)
        call->theirs = must_alloc((size_t)comm->nranks * sizeof *call->theirs);
    call->missing = 0;
    if (with_data)
        call->payloads = must_alloc(bytes * (size_t)comm->nranks);
    for (int step = 0; step < comm->nranks; step++) {
        int peer = (f->rank + step) % comm->nranks;
        if (!call_talks(call, peer))
            continue;
        call->missing++;
        bool data = with_data && bytes && brings(call, peer, &offset);
        if (peer == f->rank)
            call_heard(comm, f, data ? mine + offset : NULL, data ? bytes : 0);
        else
            wire_send(comm->world[peer], WIRE_CALL, f, sizeof *f,
                      data ? mine + offset : NULL, data ? bytes : 0);
    }
}

void comm_leave(struct ncclComm *comm) {
    const struct facts leave = {.comm = comm->id, .rank = comm->rank, .kind = CALL_LEAVE};
    if (comm->left[comm->rank] || comm->clique || !library.mpi)
        return;
    comm->left[comm->rank] = true;
    for (int r = 0; r < comm->nranks; r++)
        if (r != comm->rank)
            wire_send(comm->world[r], WIRE_CALL, &leave, sizeof leave, NULL, 0);
}

int comm_remains(const struct ncclComm *comm, int from) {
    for (int r = from; r < comm->nranks && !comm->clique && library.mpi; r++)
        if (!comm->left[r] && on_this_host(comm->world[r]))
            return r;
    return -1;
}

void call_heard(struct ncclComm *comm, const struct facts *facts, const char *payload,
                size_t bytes) {
    if (facts->kind == CALL_LEAVE) {
        comm->left[facts->rank] = true;
        return;
    }
    // With a root, a rank can be done before it has heard from all who call with it. In
    // a group, later ones can be done before.
    const struct facts *mine = &comm->history[facts->seq % HISTORY];
    bool over = !point_to_point(facts->kind) && facts->seq <= comm->started;
    for (struct call *call = comm->running; over && call; call = call->next_waiting)
        over = call->facts.seq != facts->seq;
    if (over) {
        if (library.check != CHECK_OFF && mine->seq == facts->seq &&
            !facts_agree(mine, facts)) {
            struct facts *all = must_alloc((size_t)comm->nranks * sizeof *all);
            bool *have = must_alloc((size_t)comm->nranks);
            all[facts->rank] = *facts;
            all[comm->rank] = *mine;
            have[facts->rank] = have[comm->rank] = true;
            check_mismatch(all, have, comm->nranks);
        }
        return;
    }
    struct early *early = must_alloc(sizeof *early + bytes);
    early->facts = *facts;
    early->bytes = bytes;
    if (bytes)
        memcpy(early->payload, payload, bytes);
    if (comm->last_early)
        comm->last_early->next = early;
    else
        comm->early = early;
    comm->last_early = early;
}

/* Takes the announcements that belong to this call. */
static bool listen(struct call *call) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    bool any = false, pair = point_to_point(f->kind);
    struct early *before = NULL;
    for (struct early *early = comm->early; early;) {
        struct early *next = early->next;
        const struct facts *theirs = &early->facts;
        bool fits = pair ? partners(f, theirs)
                         : !point_to_point(theirs->kind) && theirs->seq == f->seq;
        if (!fits) {
            before = early;
            early = next;
            continue;
        }
        if (call_talks(call, theirs->rank) && !call->heard[theirs->rank])
            call->missing--;
        call->heard[theirs->rank] = true;
        if (library.check != CHECK_OFF && !facts_agree(f, theirs)) {
            if (pair)
                check_pair(f, theirs);
            else if (call->differ == 0)
                call->differ = now();
        }
        if (call->theirs)
            call->theirs[theirs->rank] = *theirs;
        size_t room = travel_bytes(call);
        if (call->payloads && early->bytes)
            memcpy(call->payloads + room * (size_t)theirs->rank, early->payload,
                   early->bytes < room ? early->bytes : room);
        if (before)
            before->next = next;
        else
            comm->early = next;
        if (!next)
            comm->last_early = before;
        free(early);
        early = next;
        any = true;
    }
    return any;
}

/* --- Small data: it is all here --------------------------------------------------- */

static void finish_inline(struct call *call) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    size_t bytes = travel_bytes(call), n = (size_t)comm->nranks, offset;
    char *all = call->payloads, *to = shadow(call->recvbuff);
    if (brings(call, f->rank, &offset) && bytes && f->kind != CALL_SEND)
        memcpy(all + bytes * (size_t)f->rank, (const char *)contribution(call) + offset,
               bytes);
    switch (f->kind) {
    case CALL_ALL_REDUCE:
    case CALL_REDUCE:
    case CALL_REDUCE_SCATTER:
        if (call_recv_bytes(call) == 0)
            break;
        for (size_t r = 1; r < n; r++)
            reduce_into(all, all + r * bytes, f->count, carry_type(f->type), f->redop);
        from_carry(to, all, f->count, f->type, f->redop, comm->nranks);
        break;
    case CALL_BROADCAST:
    case CALL_SCATTER:
    case CALL_RECV:
        if (bytes)
            memcpy(to, all + bytes * (size_t)f->root, bytes);
        break;
    case CALL_ALL_GATHER:
    case CALL_ALL_TO_ALL:
    case CALL_GATHER:
        if (call_recv_bytes(call))
            memcpy(to, all, bytes * n);
        break;
    default: break;
    }
    call->state = CALL_DONE;
}

/* --- Large data: MPI moves it ----------------------------------------------------- */

/* Room for what comes in: the communicator's own, where no other call has it, since fresh
 * memory costs more than the data that it takes. */
static char *borrow(struct ncclComm *comm, size_t bytes) {
    if (comm->scratch_lent)
        return must_alloc(bytes);
    if (bytes > comm->scratch_bytes || !comm->scratch) {
        free(comm->scratch);
        comm->scratch = must_alloc(bytes);
        comm->scratch_bytes = bytes;
    }
    comm->scratch_lent = true;
    return comm->scratch;
}

/* An all-reduce and a reduce have as many parts as ranks, each added up by one of them,
 * which then sends the sums to those who get them. */
static bool in_parts(const struct call *call) {
    return call->facts.kind == CALL_ALL_REDUCE || call->facts.kind == CALL_REDUCE;
}

static size_t part_begin(const struct call *call, int r) {
    return call->facts.count * (size_t)r / (size_t)call->comm->nranks;
}

static size_t part_count(const struct call *call, int r) {
    return part_begin(call, r + 1) - part_begin(call, r);
}

struct traffic { // between this rank and another: addresses, and how many elements
    const char *out;
    char *in;
    size_t nout, nin;
};

static struct traffic traffic_with(struct call *call, int peer) {
    const struct facts *f = &call->facts;
    const char *from = contribution(call);
    char *to = shadow(call->recvbuff), *sums = call->result ? call->result : to;
    size_t n = f->count, bytes = travel_bytes(call), theirs = bytes * (size_t)peer;
    size_t offset, nout = brings(call, peer, &offset) ? n : 0;
    const char *out = from + offset;
    switch (f->kind) {
    case CALL_BROADCAST:
    case CALL_SCATTER:
    case CALL_RECV: return (struct traffic){out, to, nout, peer == f->root ? n : 0};
    case CALL_GATHER:
        return (struct traffic){out, to + theirs, nout, f->rank == f->root ? n : 0};
    case CALL_ALL_GATHER:
    case CALL_ALL_TO_ALL: return (struct traffic){out, to + theirs, nout, n};
    case CALL_REDUCE_SCATTER:
        return (struct traffic){out, call->payloads + theirs, nout, n};
    case CALL_SEND: return (struct traffic){out, NULL, nout, 0};
    default: break;
    }
    // An all-reduce or a reduce: first the parts, to be added up, then the sums.
    size_t one = bytes / n, mine = part_count(call, f->rank);
    size_t its = part_count(call, peer), its_begin = part_begin(call, peer) * one;
    if (!call->summed)
        return (struct traffic){from + its_begin,
                                call->payloads + (size_t)peer * mine * one, its, mine};
    bool everyone = f->kind == CALL_ALL_REDUCE;
    return (struct traffic){sums + part_begin(call, f->rank) * one, sums + its_begin,
                            everyone || peer == f->root ? mine : 0,
                            everyone || f->rank == f->root ? its : 0};
}

/* What goes to the others, or comes from them, all at once. Messages, and not MPI's
 * non-blocking collectives, which are slower and need ranks that agree. */
static void post(struct call *call, bool receives) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    int n = comm->nranks, error = MPI_SUCCESS;
    bool pair = point_to_point(f->kind);
    int tag = (int)(f->seq & 0x3fff) * 2 + pair;
    int type = reduces(f->kind) ? carry_type(f->type) : f->type;
    for (int step = pair ? 0 : 1; step < n && error == MPI_SUCCESS; step++) {
        int peer = (f->rank + (receives ? n - step : step)) % n;
        struct traffic traffic = traffic_with(call, peer);
        MPI_Request *request = &call->requests[call->nrequests];
        if (receives && traffic.nin)
            error = PMPI_Irecv(traffic.in, (int)traffic.nin, mpi_type(type), peer, tag,
                               comm->mpi, request);
        else if (!receives && traffic.nout)
            error = PMPI_Isend(traffic.out, (int)traffic.nout, mpi_type(type), peer, tag,
                               comm->mpi, request);
        else
            continue;
        call->nrequests++;
    }
    call->failed |= error != MPI_SUCCESS;
}

/* This rank's own block, from sendbuff to recvbuff. */
static void copy_own(struct call *call) {
    const struct facts *f = &call->facts;
    if (reduces(f->kind) || point_to_point(f->kind))
        return;
    struct traffic own = traffic_with(call, f->rank);
    if (own.nout && own.nin && own.out != own.in)
        memcpy(own.in, own.out, travel_bytes(call));
}

static void start_moving(struct call *call) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    size_t bytes = travel_bytes(call), n = (size_t)comm->nranks;
    call->state = CALL_MOVING;
    call->requests = must_alloc(2 * n * sizeof *call->requests);
    if (f->kind == CALL_REDUCE_SCATTER)
        call->payloads = borrow(comm, bytes * n);
    if (in_parts(call))
        call->payloads = borrow(comm, part_count(call, f->rank) * (bytes / f->count) * n);
    if (in_parts(call) && (carry_type(f->type) != f->type || !call_recv_bytes(call)))
        call->result = must_grow(NULL, bytes);
    copy_own(call);
    post(call, false);
}

/* Adds up `count` elements: this rank's own, and the others' in call->payloads, `count`
 * of each rank. A piece at a time, so that what is added to stays in the cache. */
static void add_up(const struct call *call, char *sum, const char *own, size_t count) {
    const struct facts *f = &call->facts;
    int type = carry_type(f->type);
    size_t one = type_size(type), piece = 16384 / one;
    for (size_t first = 0; first < count; first += piece) {
        size_t n = count - first < piece ? count - first : piece, at = first * one;
        if (sum + at != own + at)
            memmove(sum + at, own + at, n * one);
        for (int r = 0; r < call->comm->nranks; r++)
            if (r != f->rank)
                reduce_into(sum + at, call->payloads + (size_t)r * count * one + at, n,
                            type, f->redop);
    }
}

static bool finish_moving(struct call *call) {
    int complete = 0;
    const struct facts *f = &call->facts;
    // Not before the ranks agree: Open MPI writes past the end of a buffer that is too
    // short for what comes.
    if (!call->receiving) {
        if (call->missing > 0 || call->differ != 0)
            return false;
        call->receiving = true;
        post(call, true);
    }
    if (!call->failed)
        call->failed = PMPI_Testall(call->nrequests, call->requests, &complete,
                                    MPI_STATUSES_IGNORE) != MPI_SUCCESS;
    if (call->failed || !complete)
        return false;
    char *to = shadow(call->recvbuff), *result = call->result ? call->result : to;
    const char *own = contribution(call);
    if (in_parts(call) && !call->summed) {
        size_t skip = part_begin(call, f->rank) * type_size(carry_type(f->type));
        add_up(call, result + skip, own + skip, part_count(call, f->rank));
        call->summed = true;
        call->nrequests = 0;
        post(call, true);
        post(call, false);
        return true;
    }
    if (f->kind == CALL_REDUCE_SCATTER) {
        // Nobody else needs our contribution now, if it is not the user's buffer.
        result = call->contribution ? call->contribution : to;
        add_up(call, result, own + travel_bytes(call) * (size_t)f->rank, f->count);
    }
    if (reduces(f->kind) && call_recv_bytes(call) &&
        (result != to || f->redop == ncclAvg))
        from_carry(to, result, f->count, f->type, f->redop, call->comm->nranks);
    call->state = CALL_DONE;
    return true;
}

bool call_advance(struct call *call) {
    struct ncclComm *comm = call->comm;
    const struct facts *f = &call->facts;
    bool pair = point_to_point(f->kind), further = false;
    if (comm->aborted) {
        call->state = CALL_DONE;
        return true;
    }
    if (call->state == CALL_QUEUED) {
        // Collectives of a communicator start in the order of their calls.
        if (!pair && comm->started + 1 != f->seq)
            return false;
        call_announce(call);
        further = true;
    }
    if (comm->clique)
        return (call->state == CALL_ANNOUNCED && advance_here(call)) || further;
    if (call->heard)
        further |= listen(call);
    // A moment for the others to come, and first for a rank that hears from all of them:
    // the report names them all.
    bool hears_all = f->root < 0 || f->rank == f->root;
    if (call->differ != 0 && now() > call->differ + (hears_all ? 0 : 0.5) &&
        (call->missing == 0 || now() > call->differ + 2)) {
        call->theirs[f->rank] = *f;
        call->heard[f->rank] = true;
        check_mismatch(call->theirs, call->heard, comm->nranks);
    }
    if (call->state == CALL_ANNOUNCED) {
        bool small = travels_inline(call);
        bool agreed = call->missing == 0 && call->differ == 0;
        if ((small && !agreed) || (!pair && comm->moved + 1 != f->seq))
            return further;
        if (!pair)
            comm->moved = f->seq;
        further = true;
        if (small)
            finish_inline(call);
        else
            start_moving(call);
    }
    if (call->state == CALL_MOVING)
        further |= finish_moving(call);
    if (call->state == CALL_DONE && !pair)
        unlist(call);
    return further;
}
