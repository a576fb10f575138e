/*
 * puts.c has the puts into windows of other ranks, the signals, and the waits for them. A
 * put sends its data with the signal, and its buffer is free at once; the other rank
 * writes it when it looks for messages. One after the other, in the order in which they
 * were sent.
 * NCCL User Guide, "One-sided communication".
 */
#include "data/puts.h"

#include "standin.h"

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
    return comm_is_one(of) && of->state == READY ? of->id : 0;
}

size_t standin_window_bytes(const void *comm, const void *handle, int peer) {
    LOCKED;
    const struct ncclComm *of = comm;
    if (!comm_is_one(of) || of->state != READY || peer < 0 || peer >= of->nranks)
        return 0;
    const struct registration *window = comm_registered(of, handle, true);
    return window && window->sizes ? window->sizes[peer] : 0;
}

bool puts_usable(const struct call *call) {
    if (call->facts.kind != CALL_PUT)
        return true;
    const struct registration *window = window_numbered(call->comm, call->window);
    if (!window || !window->sizes)
        return false;
    uint64_t there = window->sizes[call->facts.root];
    size_t bytes = call_sends(call);
    return bytes <= there && call->offset <= there - bytes;
}

static struct signals *signals_of(struct ncclComm *comm, int peer, int index) {
    if (!comm->signals)
        comm->signals =
            base_alloc((size_t)(comm->nranks * comm->nsignals) * sizeof *comm->signals);
    return &comm->signals[peer * comm->nsignals + index];
}

static void signal_came(struct signals *signals, double time) {
    if (clock_on) {
        if (signals->first + signals->n == signals->room) {
            signals->room = 2 * signals->room + 8;
            signals->times =
                base_grow(signals->times, signals->room * sizeof *signals->times);
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

static atomic_ulong arrived;

static atomic_bool kernel_runs;

void puts_kernel_runs(bool runs) {
    kernel_runs = runs;
    arrived += runs;
}

uint64_t standin_arrived(void *self) {
    (void)self;
    return arrived + (kernel_runs ? (uint64_t)(now() * 1e6) : 0);
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

void puts_start(void) {
    exchange_put = came;
}

static void send(struct call *call, double now) {
    struct facts facts = {.kind = call->facts.kind,
                          .to = call->facts.root,
                          .tag = call->window,
                          .redop = -1,
                          .start = now};
    size_t left = call->facts.kind == CALL_PUT ? call_sends(call) : 0, at = 0;
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

bool puts_advance(struct call *call, double now) {
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
