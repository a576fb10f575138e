/*
 * operation.c has an operation of NCCL in a stream: the calls of one group on one
 * communicator, or a single call.
 * NCCL User Guide, "Group Calls", "CUDA Stream Semantics".
 */
#include "nccl/operation.h"

#include "cuda/capture.h"
#include "data/number.h"
#include "data/puts.h"

/* The calls of one group on one communicator. */
struct operation {
    struct op op;
    struct ncclComm *comm;
    struct call *calls;
    unsigned era;
    bool too_late; // the communicator was no more when this was launched
    bool started;
};

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

/* Whether it lies in memory that is registered, or in a window. */
static bool registered(const struct ncclComm *comm, const void *at, bool window) {
    const char *byte = at;
    for (const struct registration *r = comm->registrations; r; r = r->next)
        if (r->live && (r->window || !window) && byte >= r->buffer &&
            byte < r->buffer + r->bytes)
            return true;
    return false;
}

/* A collective gains by windows, a send or a receive by any registered buffer. */
static bool direct(const struct call *call) {
    const struct ncclComm *comm = call->comm;
    switch (call->facts.kind) {
    case CALL_SEND: return registered(comm, call->sendbuff, false);
    case CALL_RECV: return registered(comm, call->recvbuff, false);
    default:
        return registered(comm, call->sendbuff, true) &&
               registered(comm, call->recvbuff, true);
    }
}

/* Whether the operation has an earlier one from or to the same rank. */
static bool again(const struct operation *operation, const struct call *call) {
    for (const struct call *other = operation->calls; other != call; other = other->next)
        if (other->facts.kind == call->facts.kind &&
            other->facts.root == call->facts.root)
            return true;
    return false;
}

/* The sends of a group share the way out, its receives the way in; both ways are used at
 * the same time. What is sent to oneself takes no way. Registered buffers were measured
 * with one message to a rank, and two take as long as one from plain buffers (lesson 20).
 * A put is a copy from GPU to GPU. */
static void add_messages(struct operation *operation) {
    struct ncclComm *comm = operation->comm;
    double bytes[2] = {0, 0};
    int peers[2] = {0, 0};
    bool any = false, own = false, far = false, all_direct = true;
    for (const struct call *call = operation->calls; call; call = call->next) {
        const struct facts *f = &call->facts;
        if (!point_to_point(f->kind) && f->kind != CALL_PUT)
            continue;
        bool between = clock_far(comm->world[comm->rank], comm->world[f->root]);
        if (f->kind == CALL_PUT && !between) {
            enum clock_way way = f->root == comm->rank ? WAY_WITHIN : WAY_PEER;
            struct cost copy = clock_of_copy(way, f->count * type_size(f->type));
            clock_add(&operation->op.cost, &copy);
            continue;
        }
        any = true;
        if (f->root == comm->rank && comm->nranks > 1) {
            own = true;
            continue;
        }
        bytes[f->kind == CALL_RECV] += (double)f->count * (double)type_size(f->type);
        peers[f->kind == CALL_RECV] += !again(operation, call);
        all_direct &= f->kind == CALL_PUT || (direct(call) && !again(operation, call));
        far |= between;
    }
    if (!any)
        return;
    int most = bytes[1] > bytes[0];
    struct cost cost = clock_messages(&comm->ranks, bytes[most], bytes[!most],
                                      peers[most], own, far, all_direct);
    clock_add(&operation->op.cost, &cost);
}

static void set_cost(struct operation *operation) {
    struct ncclComm *comm = operation->comm;
    int ncalls = 0;
    bool any_direct = false, messages = true;
    enum clock_launch launch = LAUNCH_PLAIN;
    for (const struct call *call = operation->calls; call; call = call->next) {
        ncalls++;
        messages &= point_to_point(call->facts.kind);
        any_direct |= direct(call);
        launch = one_sided(call->facts.kind)        ? LAUNCH_ONE_SIDED
                 : point_to_point(call->facts.kind) ? LAUNCH_SENDS
                                                    : LAUNCH_PLAIN;
    }
    operation->op.cost = (struct cost){.host = clock_launch(ncalls, launch, any_direct)};
    add_messages(operation);
    for (const struct call *call = operation->calls; call; call = call->next) {
        const struct facts *f = &call->facts;
        double bytes = (double)f->count * (double)type_size(f->type);
        if (point_to_point(f->kind) || one_sided(f->kind))
            continue;
        bool each = f->kind == CALL_ALL_GATHER || f->kind == CALL_REDUCE_SCATTER ||
                    f->kind == CALL_ALL_TO_ALL;
        int peers = comm->nranks > 1 ? comm->nranks - 1 : 1;
        if (clock_op_of(f->kind) == OP_GATHER)
            bytes *= peers;
        struct cost cost =
            clock_nccl(clock_op_of(f->kind), &comm->ranks,
                       each ? bytes * comm->nranks : bytes, peers, false, direct(call));
        clock_add(&operation->op.cost, &cost);
    }
    // On two ranks, where it was measured in a row, that did not take less than the host.
    struct cost *cost = &operation->op.cost;
    bool measured = comm->nranks == 2 && launch != LAUNCH_ONE_SIDED && !any_direct;
    double in_a_row = cost->pace > 0 ? cost->pace : cost->latency;
    if (measured && (messages || ncalls == 1) && cost->host > in_a_row)
        cost->host = in_a_row;
    if (launch != LAUNCH_ONE_SIDED && cost->host < cost->pace)
        cost->host = cost->pace;
}

/* It starts when the last of its ranks has come, and is as long as that with most to do.
 */
static void hear_others(struct operation *operation) {
    for (const struct call *call = operation->calls; call; call = call->next) {
        if (call->start > operation->op.start)
            operation->op.start = call->start;
        if (call->work > operation->op.cost.work)
            operation->op.cost.work = call->work;
    }
}

/* NCCL carries out the one-sided calls of a group in the order in which they were made;
 * all else goes on at the same time. */
static bool advance(struct operation *operation) {
    bool further = false, in_turn = true, done = true;
    for (struct call *call = operation->calls; call; call = call->next) {
        bool one = one_sided(call->facts.kind);
        if (one && in_turn && call->state != CALL_DONE)
            further |=
                puts_advance(call, operation->op.start + operation->op.cost.latency +
                                       operation->op.cost.work);
        else if (!one && call->state != CALL_DONE)
            further |= call_advance(call);
        in_turn &= !one || call->state == CALL_DONE;
        done &= call->state == CALL_DONE;
    }
    operation->op.done = done;
    return further;
}

static bool usable(const struct operation *operation) {
    for (const struct call *call = operation->calls; call; call = call->next)
        if (!call_usable(call) || (one_sided(call->facts.kind) && !puts_usable(call)))
            return false;
    return true;
}

static bool step(struct op *op) {
    struct operation *operation = (struct operation *)op;
    if (operation->too_late || (!operation->started && !usable(operation))) {
        device_break(operation->comm->device, cudaErrorIllegalAddress);
        return op->done = true;
    }
    if (operation->comm->aborted || operation->era != operation->comm->era)
        return op->done = true;
    for (struct call *call = operation->calls; call && !operation->started;
         call = call->next) {
        call->facts.start = op->start;
        call->facts.work = op->cost.work;
    }
    operation->started = true;
    bool further = advance(operation);
    if (op->done)
        hear_others(operation);
    return further;
}

/* Operations of a communicator follow one another, whatever their streams; they take
 * their turns when they are launched, not when they are captured. */
static void queued(struct op *op) {
    struct operation *operation = (struct operation *)op;
    struct ncclComm *comm = operation->comm;
    operation->too_late = comm->destroyed;
    operation->era = comm->era;
    for (struct call *call = operation->calls; call && !operation->too_late;
         call = call->next)
        call_number(call);
    struct chain chain = {0};
    if (op->cost.tail > 0 && !operation->calls->next)
        chain = (struct chain){operation->calls->facts.kind, operation->calls->facts.root,
                               op->cost.tail};
    // One that passes data on along the same chain begins where the chain is free again.
    bool next =
        comm->newest.slot == op->stream->slot && comm->newest.seq == op->stream->queued;
    if (next && comm->chain.root == chain.root && comm->chain.kind == chain.kind)
        op->early = comm->chain.tail;
    else
        op_after(op, comm->newest);
    comm->chain = chain;
    comm->newest = (struct mark){op->stream->slot, op->stream->queued + 1};
}

static void drop(struct op *op) {
    struct operation *operation = (struct operation *)op;
    while (operation->calls) {
        struct call *call = operation->calls;
        operation->calls = call->next;
        call_release(call);
    }
    comm_release(operation->comm);
}

static struct op *copy(const struct op *op);

static struct operation *operation_create(struct ncclComm *comm) {
    struct operation *operation = (struct operation *)op_create(sizeof *operation, step);
    operation->op.drop = drop;
    operation->op.copy = copy;
    operation->op.queued = queued;
    operation->comm = comm;
    comm_hold(comm);
    return operation;
}

static struct op *copy(const struct op *op) {
    const struct operation *from = (const struct operation *)op;
    struct operation *operation = operation_create(from->comm);
    struct call **end = &operation->calls;
    for (const struct call *call = from->calls; call; call = call->next) {
        *end = call_copy(call);
        end = &(*end)->next;
    }
    operation->op.cost = from->op.cost;
    return &operation->op;
}

/* --- Launching -------------------------------------------------------------------- */

/* Whether no call before this one is on its stream. */
static bool first_on_its_stream(const struct call *calls, const struct call *call) {
    while (calls->stream != call->stream)
        calls = calls->next;
    return calls == call;
}

/* Takes the calls on one communicator, in order; returns the rest. */
static struct call *take(struct operation *operation, struct call *calls) {
    struct call **end = &operation->calls, *rest = NULL, **rest_end = &rest;
    while (calls) {
        struct call *call = calls,
                    ***list = call->comm == operation->comm ? &end : &rest_end;
        calls = call->next;
        call->next = NULL;
        **list = call;
        *list = &call->next;
    }
    return rest;
}

/* What is on several streams "will behave as if the NCCL group operation was posted on
 * every stream". */
struct call *operation_launch(struct call *calls) {
    struct operation *operation = operation_create(calls->comm);
    struct stream *stream = calls->stream;
    struct call *rest = take(operation, calls);
    for (struct call *call = operation->calls; call; call = call->next)
        if (first_on_its_stream(operation->calls, call))
            stream_join(stream, call->stream);
    if (clock_on)
        set_cost(operation);
    for (struct call *call = operation->calls; call; call = call->next)
        if (call->launched)
            cudaEventRecord(call->launched,
                            stream->legacy ? cudaStreamLegacy : (cudaStream_t)stream);
    op_enqueue(&operation->op, stream);
    for (struct call *call = operation->calls; call; call = call->next)
        if (first_on_its_stream(operation->calls, call))
            stream_join(call->stream, stream);
    return rest;
}

/* Those of several communicators run at the same time. */
double operation_time(struct call *calls) {
    double longest = 0;
    while (calls) {
        struct operation *operation = operation_create(calls->comm);
        calls = take(operation, calls);
        set_cost(operation);
        const struct cost *cost = &operation->op.cost;
        double time = cost->latency + cost->work + cost->tail;
        longest = time > longest ? time : longest;
        op_free(&operation->op);
    }
    return longest;
}
