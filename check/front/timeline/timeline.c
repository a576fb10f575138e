/*
 * timeline.c: what the front tells a timeline: operations in streams, groups of calls of
 * NCCL, waits of the host.
 */
#define _GNU_SOURCE
#include "timeline.h"

#include "tracks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if !OVER_STANDIN && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define RANGE_BEGINS(name) ((void)nvtxRangePushA(name))
#define RANGE_ENDS() ((void)nvtxRangePop())
#else
#define RANGE_BEGINS(name) ((void)(name))
#define RANGE_ENDS() ((void)0)
#endif

static __thread struct { // what the host waits for now
    int track, device;   // or NONE
    bool may_return_at_once;
} waits_for;

void timeline_waits(const struct timeline_wait *wait) {
    struct trace_note note = {.waited = -2, .world = wait->world, .comm = wait->group};
    int number = -1;
    RANGE_BEGINS(wait->at.call);
    if (!(timeline_on & TIMELINE_FILE))
        return;
    note.device = wait->device >= 0 || !(wait->on_stream || wait->on_device)
                      ? wait->device
                      : current_device();
    if (wait->on_device)
        note.waited = -1;
    if (wait->on_stream)
        number = stream_number(wait->stream, note.device, &note.device);
    waits_for.may_return_at_once = wait->may_return_at_once;
    waits_for.track = NONE;
    waits_for.device = wait->on_device ? note.device : NONE;
    if (number >= 0) {
        pthread_mutex_lock(&notes_lock);
        note.waited = waits_for.track = track_of(number, wait->stream, note.device);
        pthread_mutex_unlock(&notes_lock);
    }
    host_begins(wait->at, note);
}

void timeline_waited(void) {
    RANGE_ENDS();
    if (!(timeline_on & TIMELINE_FILE))
        return;
    host_ends(waits_for.may_return_at_once);
    tracks_read(waits_for.track, waits_for.device);
}

struct span *timeline_begins(const struct timeline_op *op, cudaStream_t stream,
                             int device) {
    struct span *span = must_alloc(sizeof *span);
    RANGE_BEGINS(op->name);
    span->track = NONE;
    if (!(timeline_on & TIMELINE_FILE))
        return span;
    span_opens(span, stream, device);
    span_notes(span, op, 0);
    span->waits = op->waits;
    span->may_return_at_once = op->may_return_at_once;
    span->done = op->done;
    if (op->waits) {
        struct trace_note note = {.waited = span->track == NONE ? -2 : span->track,
                                  .device = span->device,
                                  .world = -1};
        host_begins(op->at, note);
    }
    return span;
}

void timeline_ends(struct span *span, int result) {
    RANGE_ENDS();
    if (span->waits)
        host_ends(span->may_return_at_once);
    span_closes(span, result);
}

void timeline_counts(uint64_t comm, int in) {
    if (!(timeline_on & TIMELINE_FILE))
        return;
    pthread_mutex_lock(&notes_lock);
    notes_count(comm, (uint64_t)in << 2);
    pthread_mutex_unlock(&notes_lock);
}

/* Those of this thread's open group. */
static __thread struct {
    struct call {
        struct timeline_op op;
        cudaStream_t stream;
        int device;
    } * calls;
    size_t n, room;
    struct span **spans;
    size_t nspans;
} group;
static atomic_int groups;

void timeline_adds(const struct timeline_op *op, cudaStream_t stream, int device) {
    if (group.n == group.room) {
        group.room = group.room ? 2 * group.room : 16;
        group.calls = must_grow(group.calls, group.room * sizeof *group.calls);
    }
    group.calls[group.n++] = (struct call){*op, stream, device};
}

void timeline_adds_not(void) {
    if (group.n > 0)
        group.n--;
}

void timeline_group_begins(struct judge_at at) {
    char name[TRACE_NAME + 32] = "ncclGroupEnd";
    int number = group.n > 1 ? ++groups : 0;
    if (group.n > 0)
        snprintf(name, sizeof name, group.n > 1 ? "%s and %zu more" : "%s",
                 group.calls[0].op.name, group.n - 1);
    RANGE_BEGINS(name);
    group.nspans = 0;
    if (!(timeline_on & TIMELINE_FILE))
        return;
    free(group.spans);
    group.spans = must_alloc((group.n + 1) * sizeof *group.spans);
    for (size_t i = 0; i < group.n; i++) {
        const struct call *call = &group.calls[i];
        struct span *span = NULL;
        for (size_t k = 0; k < group.nspans && !span; k++)
            if (group.spans[k]->stream == call->stream &&
                (call->stream || group.spans[k]->device == call->device))
                span = group.spans[k];
        if (!span) {
            span = group.spans[group.nspans++] = must_alloc(sizeof *span);
            span_opens(span, call->stream, call->device);
        }
        span_notes(span, &call->op, number);
        span->comm = call->op.comm;
    }
    const struct trace_note note = {.waited = -2, .world = -1};
    host_begins(at, note);
}

/* Spans that end when their communicator says that it is there. */
static struct in_progress {
    struct in_progress *next;
    struct span *span;
} * in_progress;

void timeline_group_ends(int result, bool returned_early) {
    RANGE_ENDS();
    group.n = 0;
    if (timeline_on & TIMELINE_FILE)
        host_ends(true);
    for (size_t i = 0; i < group.nspans; i++) {
        if (!returned_early) {
            span_closes(group.spans[i], result);
            continue;
        }
        struct in_progress *wait = must_alloc(sizeof *wait);
        pthread_mutex_lock(&notes_lock);
        *wait = (struct in_progress){in_progress, group.spans[i]};
        in_progress = wait;
        pthread_mutex_unlock(&notes_lock);
    }
    group.nspans = 0;
}

static struct span *take_in_progress(uint64_t comm) {
    struct span *span = NULL;
    pthread_mutex_lock(&notes_lock);
    for (struct in_progress **at = &in_progress; *at && !span;) {
        struct in_progress *wait = *at;
        if (wait->span->comm != comm) {
            at = &wait->next;
            continue;
        }
        span = wait->span;
        *at = wait->next;
        free(wait);
    }
    pthread_mutex_unlock(&notes_lock);
    return span;
}

void timeline_comm_ready(uint64_t comm) {
    for (struct span *span; in_progress && (span = take_in_progress(comm));)
        span_closes(span, 0);
}
