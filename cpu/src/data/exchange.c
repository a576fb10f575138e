/*
 * exchange.c has how the data of a call gets where it belongs.
 *
 * Every rank announces a call to the ranks it works with when the call has come to the
 * head of its stream. Small data comes with the announcement; larger data goes in blocks
 * of its own, at the same time. The call is done when the data is there and all have
 * announced the same. Ranks that do not agree wait for ever, as they may on GPUs.
 *
 * NCCL User Guide, "Collective Operations"; MPI Standard, "Nonblocking Communication".
 */
#include "data/exchange.h"

#include "data/number.h"

enum { INLINE_BYTES = 1024 };

static bool reduces(int kind) {
    return kind == CALL_ALL_REDUCE || kind == CALL_REDUCE || kind == CALL_REDUCE_SCATTER;
}

/* Bytes of `count` elements as they are in the buffers, and as they travel. */
static size_t raw_bytes(const struct call *call) {
    return call->facts.count * type_size(call->facts.type);
}

static size_t travel_bytes(const struct call *call) {
    if (together(call->facts.kind))
        return sizeof call->told;
    int type = call->facts.type;
    return call->facts.count *
           type_size(reduces(call->facts.kind) ? carry_type(type) : type);
}

static bool travels_inline(const struct call *call) {
    return travel_bytes(call) <= INLINE_BYTES;
}

size_t call_sends(const struct call *call) {
    const struct facts *f = &call->facts;
    size_t one = raw_bytes(call), all = one * (size_t)call->comm->nranks;
    switch (f->kind) {
    case CALL_BROADCAST: return f->rank == f->root ? one : 0;
    case CALL_REDUCE_SCATTER:
    case CALL_ALL_TO_ALL: return all;
    case CALL_SCATTER: return f->rank == f->root ? all : 0;
    case CALL_RECV: return 0;
    default: return together(f->kind) ? 0 : one;
    }
}

size_t call_receives(const struct call *call) {
    const struct facts *f = &call->facts;
    size_t one = raw_bytes(call), all = one * (size_t)call->comm->nranks;
    switch (f->kind) {
    case CALL_ALL_GATHER:
    case CALL_ALL_TO_ALL: return all;
    case CALL_REDUCE: return f->rank == f->root ? one : 0;
    case CALL_GATHER: return f->rank == f->root ? all : 0;
    case CALL_SEND: return 0;
    default: return together(f->kind) || one_sided(f->kind) ? 0 : one;
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

/* --- Coming and going ------------------------------------------------------------- */

struct call *call_create(struct ncclComm *comm, int kind) {
    struct call *call = base_alloc(sizeof *call);
    call->comm = comm;
    call->facts.kind = kind;
    call->facts.comm = comm->id;
    call->facts.rank = comm->rank;
    call->facts.root = -1;
    comm_hold(comm);
    return call;
}

struct call *call_copy(const struct call *from) {
    struct call *call = call_create(from->comm, from->facts.kind);
    call->facts = from->facts;
    call->sendbuff = from->sendbuff;
    call->recvbuff = from->recvbuff;
    memcpy(call->scalar, from->scalar, sizeof call->scalar);
    call->device_scalar = from->device_scalar;
    call->window = from->window;
    call->signal = from->signal;
    call->offset = from->offset;
    call->nwaits = from->nwaits;
    if (from->nwaits > 0) {
        size_t bytes = (size_t)from->nwaits * sizeof *from->waits;
        call->waits = base_alloc(bytes);
        memcpy(call->waits, from->waits, bytes);
    }
    return call;
}

void call_number(struct call *call) {
    struct ncclComm *comm = call->comm;
    struct facts *f = &call->facts;
    switch (f->kind) {
    case CALL_SEND: f->seq = ++comm->sends[f->root]; break;
    case CALL_RECV: f->seq = ++comm->receives[f->root]; break;
    case CALL_SPLIT: f->seq = ++comm->splits; break;
    case CALL_WINDOW: f->seq = ++comm->windows; break;
    case CALL_SUSPEND: f->seq = ++comm->suspends; break;
    case CALL_SHRINK: // by its list: those that are left out do not count it
    case CALL_PUT:
    case CALL_SIGNAL:
    case CALL_WAIT_SIGNAL: break;
    default: f->seq = ++comm->collectives;
    }
}

bool call_usable(const struct call *call) {
    size_t out = call_sends(call), in = call_receives(call);
    return (out == 0 || memory_range(call->sendbuff, out)) &&
           (in == 0 || memory_range(call->recvbuff, in)) &&
           (!call->device_scalar ||
            memory_range(call->device_scalar, type_size(call->facts.type)));
}

/* A call keeps its memory as long as MPI may use it, whatever the program does. */
static void pin(struct call *call) {
    const void *buffers[] = {call->sendbuff, call->recvbuff};
    for (int i = 0; i < 2; i++) {
        call->pinned[i] = buffers[i] ? memory_find(buffers[i]) : NULL;
        if (call->pinned[i])
            memory_pin(call->pinned[i]);
    }
}

static void unlist(struct call *call) {
    struct call **at = &call->comm->running;
    while (*at && *at != call)
        at = &(*at)->next_running;
    if (*at)
        *at = call->next_running;
}

static void end(void *owner) {
    struct call *call = owner;
    for (int i = 0; i < 2; i++)
        if (call->pinned[i])
            memory_unpin(call->pinned[i]);
    free(call->heard);
    free(call->tags);
    if (call->payloads && call->payloads == call->comm->scratch)
        call->comm->scratch_lent = false;
    else
        free(call->payloads);
    free(call->contribution);
    free(call->result);
    free(call->excluded);
    free(call->waits);
    comm_release(call->comm);
    free(call);
}

void call_release(struct call *call) {
    unlist(call);
    if (call->state == CALL_MOVING) {
        wire_abandon(&call->transfers, end, call);
        return;
    }
    wire_forget(&call->transfers);
    end(call);
}

/* Sets call->contribution to what this rank brings, ready to be added up or sent. */
static const void *contribution(struct call *call) {
    if (call->contribution)
        return call->contribution;
    const struct facts *f = &call->facts;
    if (together(f->kind))
        return call->told;
    if (call->device_scalar)
        memcpy(call->scalar, shadow(call->device_scalar), type_size(f->type));
    const void *from = shadow(call->sendbuff);
    if (!reduces(f->kind) || (carry_type(f->type) == f->type && f->redop != PRE_MUL_SUM))
        return from;
    size_t n =
        f->count * (f->kind == CALL_REDUCE_SCATTER ? (size_t)call->comm->nranks : 1);
    call->contribution = base_grow(NULL, n * type_size(carry_type(f->type)) + 1);
    to_carry(call->contribution, from, n, f->type, f->redop, call->scalar);
    return call->contribution;
}

/* --- Announcements ---------------------------------------------------------------- */

/* Announcements that came before the call they belong to, or the communicator. */
struct message {
    struct early link;
    struct facts facts;
    size_t bytes;
    char payload[];
};
static struct early *strays, *last_stray; // for communicators that are not here yet

static void keep(struct early **first, struct early **last, const struct facts *facts,
                 const char *payload, size_t bytes) {
    struct message *message = base_grow(NULL, sizeof *message + bytes);
    message->facts = *facts;
    message->link.next = NULL;
    message->bytes = bytes;
    if (bytes)
        memcpy(message->payload, payload, bytes);
    if (*last)
        (*last)->next = &message->link;
    else
        *first = &message->link;
    *last = &message->link;
}

/* Whether this rank and rank r tell each other of the call. */
static bool talks(const struct call *call, int r) {
    const struct facts *f = &call->facts;
    if (point_to_point(f->kind) || r == f->rank)
        return point_to_point(f->kind) && r == f->root;
    if (call->excluded && call->excluded[r])
        return false;
    // All who get data from one another: with a root, that is the root and each of the
    // others. But a large reduce is added up by all, in parts.
    // By a modelled clock all start when the last one has come.
    bool rooted =
        f->root >= 0 && !clock_on && (f->kind != CALL_REDUCE || travels_inline(call));
    return !rooted || f->rank == f->root || r == f->root;
}

/* The announcement of another rank for this call, whether it agrees or not. */
static bool belongs(const struct facts *mine, const struct facts *theirs) {
    bool pair = point_to_point(mine->kind);
    if (pair != point_to_point(theirs->kind) || mine->seq != theirs->seq)
        return false;
    if (pair)
        return mine->kind != theirs->kind && mine->root == theirs->rank &&
               theirs->root == mine->rank;
    return mine->kind == theirs->kind ||
           (!together(mine->kind) && !together(theirs->kind));
}

/* NCCL moves bytes, but where it adds up it must know of what. */
static bool agree(const struct facts *a, const struct facts *b) {
    if (!point_to_point(a->kind) && (a->kind != b->kind || a->root != b->root))
        return false;
    if (reduces(a->kind))
        return a->count == b->count && a->type == b->type && a->redop == b->redop;
    return a->count * type_size(a->type) == b->count * type_size(b->type);
}

static void hear(struct call *call, const struct facts *theirs, const char *payload,
                 size_t bytes) {
    int r = theirs->rank;
    if (!talks(call, r) || call->heard[r]) {
        call->differ = true;
        return;
    }
    call->heard[r] = true;
    call->missing--;
    call->differ |= !agree(&call->facts, theirs);
    call->start = theirs->start > call->start ? theirs->start : call->start;
    call->work = theirs->work > call->work ? theirs->work : call->work;
    call->tags[call->comm->nranks + r] = theirs->tag;
    if (bytes && travels_inline(call) && bytes == travel_bytes(call))
        memcpy(call->payloads + bytes * (size_t)r, payload, bytes);
}

static void hear_for(struct ncclComm *comm, const struct facts *facts,
                     const char *payload, size_t bytes) {
    if (facts->kind == CALL_LEAVE) {
        if (!comm->left[facts->rank]) {
            comm->left[facts->rank] = true;
            if (job_same_host(comm->world[facts->rank]) && facts->start > comm->left_at)
                comm->left_at = facts->start;
            comm_release(comm);
        }
        return;
    }
    if (facts->kind == CALL_CONNECT) {
        comm->came[facts->rank] |= (unsigned char)facts->root;
        return;
    }
    if (one_sided(facts->kind)) {
        exchange_put(comm, facts, payload);
        return;
    }
    for (struct call *call = comm->running; call && facts->kind != CALL_GROW_ID;
         call = call->next_running)
        if (belongs(&call->facts, facts)) {
            hear(call, facts, payload, bytes);
            return;
        }
    keep(&comm->early, &comm->last_early, facts, payload, bytes);
}

static void on_call(int from, const char *data, size_t bytes) {
    (void)from;
    struct facts facts;
    memcpy(&facts, data, sizeof facts);
    struct ncclComm *comm = comm_find(facts.comm, facts.to);
    if (comm)
        hear_for(comm, &facts, data + sizeof facts, bytes - sizeof facts);
    else
        keep(&strays, &last_stray, &facts, data + sizeof facts, bytes - sizeof facts);
}

void exchange_start(void) {
    wire_listen(WIRE_CALL, on_call);
}

void exchange_adopt(struct ncclComm *comm) {
    comm->holds += comm->nranks; // one for each that has not left
    struct early *all = strays;
    strays = last_stray = NULL;
    while (all) {
        struct message *message = (struct message *)all;
        const struct facts *f = &message->facts;
        all = all->next;
        if (f->comm == comm->id && f->to == comm->rank)
            hear_for(comm, f, message->payload, message->bytes);
        else
            keep(&strays, &last_stray, f, message->payload, message->bytes);
        free(message);
    }
}

void exchange_leave(struct ncclComm *comm, double time) {
    struct facts leave = {
        .comm = comm->id, .rank = comm->rank, .kind = CALL_LEAVE, .start = time};
    if (comm->state != READY || comm->left[comm->rank])
        return;
    for (int step = 1; step <= comm->nranks; step++) { // itself last
        leave.to = (comm->rank + step) % comm->nranks;
        wire_send(comm->world[leave.to], WIRE_CALL, &leave, sizeof leave, NULL, 0);
    }
}

void (*exchange_put)(struct ncclComm *comm, const struct facts *facts,
                     const char *payload);

void exchange_tell(struct ncclComm *comm, struct facts *facts, const void *payload,
                   size_t bytes) {
    facts->comm = comm->id;
    facts->rank = comm->rank;
    wire_send(comm->world[facts->to], WIRE_CALL, facts, sizeof *facts, payload, bytes);
}

static struct message *take_early(struct ncclComm *comm, struct early *before) {
    struct early **at = before ? &before->next : &comm->early, *taken = *at;
    *at = taken->next;
    if (!*at)
        comm->last_early = before;
    return (struct message *)taken;
}

bool exchange_told(struct ncclComm *comm, int kind, void *payload, size_t bytes,
                   bool stays) {
    struct early *before = NULL;
    for (struct early *early = comm->early; early; before = early, early = early->next) {
        if (((struct message *)early)->facts.kind != kind)
            continue;
        memcpy(payload, ((struct message *)early)->payload, bytes);
        if (!stays)
            free(take_early(comm, before));
        return true;
    }
    return false;
}

static void announce(struct call *call) {
    struct ncclComm *comm = call->comm;
    struct facts *f = &call->facts;
    size_t n = (size_t)comm->nranks, bytes = travel_bytes(call), offset;
    bool with_data = travels_inline(call) && bytes;
    const char *mine = with_data ? contribution(call) : NULL;
    call->state = CALL_ANNOUNCED;
    call->heard = base_alloc(n * sizeof *call->heard);
    call->tags = base_alloc(2 * n * sizeof *call->tags);
    if (with_data)
        call->payloads = base_alloc(bytes * n);
    for (int r = 0; r < comm->nranks; r++)
        call->missing += talks(call, r);
    struct call **last = &comm->running;
    while (*last)
        last = &(*last)->next_running;
    *last = call;
    for (int step = 0; step < comm->nranks; step++) {
        int peer = (f->rank + step) % comm->nranks;
        if (!talks(call, peer))
            continue;
        bool data = with_data && brings(call, peer, &offset);
        f->to = peer;
        f->tag = call->tags[peer] =
            travels_inline(call) ? 0 : wire_tag(comm->world[peer]);
        wire_send(comm->world[peer], WIRE_CALL, f, sizeof *f, data ? mine + offset : NULL,
                  data ? bytes : 0);
    }
    struct early *before = NULL;
    for (struct early *early = comm->early; early;
         early = before ? before->next : comm->early) {
        if (!belongs(f, &((struct message *)early)->facts)) {
            before = early;
            continue;
        }
        struct message *message = take_early(comm, before);
        hear(call, &message->facts, message->payload, message->bytes);
        free(message);
    }
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
        if (call_receives(call) == 0)
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
        if (call_receives(call))
            memcpy(to, all, bytes * n);
        break;
    default: break;
    }
    call->state = CALL_DONE;
}

/* --- Large data, in blocks --------------------------------------------------------- */

/* Room for what comes in: the communicator's own, where no other call has it, since fresh
 * memory costs more than the data that it takes. */
static char *borrow(struct ncclComm *comm, size_t bytes) {
    if (comm->scratch_lent)
        return base_alloc(bytes);
    if (bytes > comm->scratch_bytes || !comm->scratch) {
        free(comm->scratch);
        comm->scratch = base_alloc(bytes);
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
    int n = comm->nranks;
    bool pair = point_to_point(f->kind);
    size_t one = travel_bytes(call) / f->count;
    for (int step = pair ? 0 : 1; step < n; step++) {
        int peer = (f->rank + (receives ? n - step : step)) % n;
        struct traffic traffic = traffic_with(call, peer);
        if (receives && traffic.nin)
            wire_take(&call->transfers, comm->world[peer], call->tags[n + peer],
                      traffic.in, traffic.nin * one);
        else if (!receives && traffic.nout)
            wire_put(&call->transfers, comm->world[peer], call->tags[peer], traffic.out,
                     traffic.nout * one);
    }
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
    if (f->kind == CALL_REDUCE_SCATTER)
        call->payloads = borrow(comm, bytes * n);
    if (in_parts(call))
        call->payloads = borrow(comm, part_count(call, f->rank) * (bytes / f->count) * n);
    if (in_parts(call) && (carry_type(f->type) != f->type || !call_receives(call)))
        call->result = base_grow(NULL, bytes);
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
    const struct facts *f = &call->facts;
    // Not before the ranks agree: Open MPI writes past the end of a buffer that is too
    // short for what comes.
    if (!call->receiving) {
        if (call->missing > 0 || call->differ)
            return false;
        call->receiving = true;
        post(call, true);
    }
    if (!wire_moved(&call->transfers))
        return false;
    char *to = shadow(call->recvbuff), *result = call->result ? call->result : to;
    const char *own = contribution(call);
    if (in_parts(call) && !call->summed) {
        size_t skip = part_begin(call, f->rank) * type_size(carry_type(f->type));
        add_up(call, result + skip, own + skip, part_count(call, f->rank));
        call->summed = true;
        post(call, true);
        post(call, false);
        return true;
    }
    if (f->kind == CALL_REDUCE_SCATTER) {
        // Nobody else needs our contribution now, if it is not the user's buffer.
        result = call->contribution ? call->contribution : to;
        add_up(call, result, own + travel_bytes(call) * (size_t)f->rank, f->count);
    }
    if (reduces(f->kind) && call_receives(call) && (result != to || f->redop == ncclAvg))
        from_carry(to, result, f->count, f->type, f->redop, call->comm->nranks);
    call->state = CALL_DONE;
    return true;
}

bool call_advance(struct call *call) {
    bool further = false, small = travels_inline(call);
    if (call->state == CALL_QUEUED) {
        pin(call);
        announce(call);
        further = true;
    }
    if (call->state == CALL_ANNOUNCED && small && call->missing == 0 && !call->differ) {
        finish_inline(call);
        further = true;
    } else if (call->state == CALL_ANNOUNCED && !small) {
        start_moving(call);
        further = true;
    }
    if (call->state == CALL_MOVING)
        further |= finish_moving(call);
    if (call->state == CALL_DONE)
        unlist(call);
    return further;
}
