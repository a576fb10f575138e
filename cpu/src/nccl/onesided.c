/*
 * onesided.c has the puts into windows of other ranks, the signals, and the waits for
 * them. A put sends its data with the signal, and its buffer is free at once; the other
 * rank writes it when it looks for messages. One after the other, in the order in which
 * they were sent.
 * NCCL User Guide, "One-sided communication".
 */
#include "nccl/onesided.h"

#include "nccl/calls.h"

#include <stdatomic.h>

enum { PIECE = 1 << 26 }; // bytes in one message

static struct registration *window_numbered(const struct ncclComm *comm, int number) {
    struct registration *one = comm->registrations;
    while (one && (!one->window || one->number != number))
        one = one->next;
    return one;
}

uint64_t standin_comm_id(const void *comm) {
    LOCKED;
    const struct ncclComm *of = comm;
    return comm_known(of) && of->state == READY ? of->id : 0;
}

size_t standin_window_bytes(const void *comm, const void *handle, int peer) {
    LOCKED;
    const struct ncclComm *of = comm;
    if (!comm_known(of) || of->state != READY || peer < 0 || peer >= of->nranks)
        return 0;
    const struct registration *window = comm_registered(of, handle, true);
    return window && window->sizes ? window->sizes[peer] : 0;
}

bool onesided_usable(const struct call *call) {
    if (call->facts.kind != CALL_PUT)
        return true;
    const struct registration *window = window_numbered(call->comm, call->window);
    if (!window || !window->sizes)
        return false;
    uint64_t there = window->sizes[call->facts.root];
    size_t bytes = call_send_bytes(call);
    return bytes <= there && call->offset <= there - bytes;
}

/* --- Signals ----------------------------------------------------------------------- */

static struct signals *signals_of(struct ncclComm *comm, int peer, int index) {
    if (!comm->signals)
        comm->signals =
            must_alloc((size_t)(comm->nranks * comm->nsignals) * sizeof *comm->signals);
    return &comm->signals[peer * comm->nsignals + index];
}

static void signal_came(struct signals *signals, double time) {
    if (clock_on) {
        if (signals->first + signals->n == signals->room) {
            signals->room = 2 * signals->room + 8;
            signals->times =
                must_grow(signals->times, signals->room * sizeof *signals->times);
        }
        signals->times[signals->first + signals->n] = time;
    }
    signals->n++;
}

static void take_signals(struct signals *signals, uint64_t n, double *latest) {
    signals->n -= n;
    for (uint64_t i = 0; clock_on && i < n; i++) {
        double time = signals->times[signals->first++];
        *latest = time > *latest ? time : *latest;
    }
    if (signals->n == 0)
        signals->first = 0;
}

static bool all_came(const struct call *call) {
    for (int i = 0; i < call->nwaits; i++) {
        const ncclWaitSignalDesc_t *wait = &call->waits[i];
        uint64_t wanted = 0;
        for (int j = 0; j < call->nwaits; j++)
            if (call->waits[j].peer == wait->peer &&
                call->waits[j].sigIdx == wait->sigIdx)
                wanted += (uint64_t)call->waits[j].opCnt;
        if (signals_of(call->comm, wait->peer, wait->sigIdx)->n < wanted)
            return false;
    }
    return true;
}

/* --- What comes in ----------------------------------------------------------------- */

static atomic_ulong arrived;

uint64_t standin_arrived(void *self) {
    (void)self;
    return arrived;
}

static void came(struct ncclComm *comm, const struct facts *facts, const char *payload) {
    const struct registration *window = window_numbered(comm, facts->tag);
    arrived++;
    if (facts->kind == CALL_PUT && window && facts->count > 0) {
        char *to = window->buffer + facts->seq;
        if (memory_range(to, facts->count))
            memcpy(shadow(to), payload, facts->count);
        else
            device_break(comm->device, cudaErrorIllegalAddress);
    }
    if (facts->redop >= 0 && facts->redop < comm->nsignals)
        signal_came(signals_of(comm, facts->rank, facts->redop), facts->start);
}

void onesided_start(void) {
    exchange_put = came;
}

/* --- What goes out ----------------------------------------------------------------- */

static void send(struct call *call, double now) {
    struct facts facts = {.kind = call->facts.kind,
                          .to = call->facts.root,
                          .tag = call->window,
                          .redop = -1,
                          .start = now};
    size_t left = call->facts.kind == CALL_PUT ? call_send_bytes(call) : 0, at = 0;
    const char *from = left > 0 ? shadow(call->sendbuff) : NULL;
    while (left > PIECE) {
        facts.seq = call->offset + at;
        facts.count = PIECE;
        exchange_tell(call->comm, &facts, from + at, PIECE);
        at += PIECE;
        left -= PIECE;
    }
    facts.seq = call->offset + at;
    facts.count = left;
    facts.redop = call->signal;
    exchange_tell(call->comm, &facts, from + at, left);
}

bool onesided_advance(struct call *call, double now) {
    if (call->facts.kind != CALL_WAIT_SIGNAL) {
        send(call, now);
    } else if (all_came(call)) {
        for (int i = 0; i < call->nwaits; i++)
            take_signals(
                signals_of(call->comm, call->waits[i].peer, call->waits[i].sigIdx),
                (uint64_t)call->waits[i].opCnt, &call->start);
    } else {
        return false;
    }
    call->state = CALL_DONE;
    return true;
}

/* --- The calls --------------------------------------------------------------------- */

static ncclResult_t check_index(const char *name, const struct ncclComm *comm, int peer,
                                int index, int context) {
    if (peer < 0 || peer >= comm->nranks)
        return nccl_error(ncclInvalidArgument,
                          "%s: peer %d, and the communicator has %d ranks", name, peer,
                          comm->nranks);
    if (index < 0 || index >= comm->nsignals || context != 0)
        return nccl_error(
            ncclInvalidArgument, "%s: %s is %d, and it must be %s", name,
            context ? "ctx" : "sigIdx", context ? context : index,
            context || comm->nsignals == 1 ? "0" : "less than numRmaSig in ncclConfig_t");
    return ncclSuccess;
}

/* As NCCL, which makes what they need with the first window. */
static ncclResult_t check_rma(const char *name, const struct ncclComm *comm) {
    return comm->rma ? ncclSuccess
                     : nccl_error(ncclInvalidUsage,
                                  "%s: no symmetric window was registered before, nor is "
                                  "NCCL_RMA_EAGER_INIT=1 set",
                                  name);
}

static const struct registration *symmetric_window(const struct ncclComm *comm,
                                                   const void *at) {
    for (const struct registration *one = comm->registrations; one; one = one->next)
        if (one->live && one->window && one->symmetric &&
            (const char *)at >= one->buffer &&
            (const char *)at < one->buffer + one->bytes)
            return one;
    return NULL;
}

ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int index, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream)
        result = check_index(__func__, comm, peer, index, context);
    if (result != ncclSuccess)
        return in_group(result);
    const struct registration *to = comm_registered(comm, window, true);
    const char *why = flags != 0                              ? "flags is not 0"
                      : (int)type < 0 || type >= ncclNumTypes ? "datatype is no data type"
                      : !to    ? "peerWin is not a window of this communicator"
                      : !local ? "localbuff is NULL"
                      : !symmetric_window(comm, local)
                          ? "localbuff lies in no window with NCCL_WIN_COLL_SYMMETRIC"
                          : NULL;
    if (why)
        return in_group(nccl_error(ncclInvalidArgument, "%s: %s", __func__, why));
    struct call *call = call_create(comm, CALL_PUT);
    call->facts.type = type;
    call->facts.count = count;
    call->facts.root = peer;
    call->sendbuff = local;
    call->window = to->number;
    call->offset = offset;
    call->signal = index;
    return in_group(queue_call(call, stream));
}

ncclResult_t ncclSignal(int peer, int index, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream)
        result = check_index(__func__, comm, peer, index, context);
    if (result == ncclSuccess && flags != 0)
        result = nccl_error(ncclInvalidArgument, "%s: flags is not 0", __func__);
    if (result == ncclSuccess)
        result = check_rma(__func__, comm);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, CALL_SIGNAL);
    call->facts.root = peer;
    call->signal = index;
    return in_group(queue_call(call, stream));
}

ncclResult_t ncclWaitSignal(int n, ncclWaitSignalDesc_t *waits, ncclComm_t comm,
                            cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream && (!waits || n < 1))
        result = nccl_error(ncclInvalidArgument, "%s: %s", __func__,
                            waits ? "nDesc is less than 1" : "signalDescs is NULL");
    for (int i = 0; result == ncclSuccess && i < n; i++) {
        result =
            check_index(__func__, comm, waits[i].peer, waits[i].sigIdx, waits[i].ctx);
        if (result == ncclSuccess && waits[i].opCnt < 1)
            result = nccl_error(ncclInvalidArgument, "%s: opCnt is %d", __func__,
                                waits[i].opCnt);
    }
    if (result == ncclSuccess)
        result = check_rma(__func__, comm);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, CALL_WAIT_SIGNAL);
    call->nwaits = n;
    call->waits = must_alloc((size_t)n * sizeof *waits);
    memcpy(call->waits, waits, (size_t)n * sizeof *waits);
    return in_group(queue_call(call, stream));
}
