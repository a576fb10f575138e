/*
 * judge.c: the events, handed to the parts.
 */
#define _POSIX_C_SOURCE 200809L
#include "judge.h"

#include "base/post.h"
#include "memory/allocations.h"
#include "order/background.h"
#include "order/detour.h"
#include "order/functions.h"
#include "order/graphs.h"
#include "order/groups.h"
#include "order/issue.h"
#include "ranks/compare.h"
#include "stuck/stuck.h"
#include "stuck/waits.h"

#include <pthread.h>
#include <stdio.h>

struct lock {
    pthread_mutex_t mutex;
};

struct judge *judge_new(const struct judge_outside *outside,
                        const struct judge_options *options) {
    struct judge *j = must_alloc(sizeof *j);
    j->outside = *outside;
    j->options = *options;
    j->nranks = 1;
    snprintf(j->host, sizeof j->host, "this host");
    j->lock = must_alloc(sizeof *j->lock);
    pthread_mutex_init(&j->lock->mutex, NULL);
    j->order = order_new();
    j->uses = uses_new();
    j->functions = functions_new();
    j->graphs = graphs_new();
    j->reports = reports_new();
    j->failures = failures_new();
    return j;
}

static void thread_free(struct judge *j, struct thread *thread) {
    waits_thread_gone(j, thread);
    groups_free(thread->group);
    latest_free(thread->latest);
    free(thread);
}

void judge_free(struct judge *j) {
    while (j->threads) {
        struct thread *thread = j->threads;
        j->threads = thread->next;
        thread_free(j, thread);
    }
    waits_free(j);
    stuck_free(j);
    calls_free(j);
    compare_free(j);
    members_free(j);
    post_free(j);
    for (int s = 0; s < j->order->nstreams; s++)
        graph_stream_gone(j, s);
    graphs_free(j->graphs);
    functions_free(j->functions);
    background_free(j->background);
    uses_free(j->uses);
    order_free(j->order);
    reports_free(j->reports);
    failures_free(j->failures);
    detour_free(j);
    map_free(&j->threads_by_number);
    clock_free(&j->known);
    pthread_mutex_destroy(&j->lock->mutex);
    free(j->lock);
    free(j);
}

void judge_world(struct judge *j, int rank, int nranks, const char *host) {
    j->rank = rank;
    j->nranks = nranks;
    snprintf(j->host, sizeof j->host, "%s", host);
}

void judge_set(struct judge *j, const struct judge_options *options) {
    j->options = *options;
}

void judge_enter(struct judge *j, int number) {
    pthread_mutex_lock(&j->lock->mutex);
    j->entered = true;
    j->moment = 0;
    j->thread = number ? map_get(&j->threads_by_number, (uint64_t)number) : NULL;
    if (!number || j->thread)
        return;
    struct thread *thread = must_alloc(sizeof *thread);
    thread->number = number;
    thread->latest = must_alloc(sizeof *thread->latest);
    thread->next = j->threads;
    j->threads = j->thread = thread;
    map_put(&j->threads_by_number, (uint64_t)number, thread);
}

void judge_leave(struct judge *j) {
    j->thread = NULL;
    j->entered = false;
    pthread_mutex_unlock(&j->lock->mutex);
}

void judge_thread_gone(struct judge *j, int number) {
    struct thread *thread = map_get(&j->threads_by_number, (uint64_t)number),
                  **at = &j->threads;
    if (!thread)
        return;
    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    map_put(&j->threads_by_number, (uint64_t)number, NULL);
    if (j->thread == thread)
        j->thread = NULL;
    thread_free(j, thread);
}

void judge_thread_name(struct judge *j, uint64_t name) {
    if (j->thread)
        j->thread->name = name;
}

/* What this judge has told itself. */
static void read_post(struct judge *j) {
    const void *data;
    size_t bytes;
    while ((data = post_take(j, &bytes)))
        judge_receive(j, j->rank, data, bytes);
}

bool judge_look(struct judge *j) {
    calls_flush(j);
    bool waits = waits_tell(j);
    read_post(j);
    compare_look(j);
    if (j->rank == 0) {
        members_look(j);
        stuck_look(j);
    }
    return waits;
}

void judge_last_look(struct judge *j) {
    j->last = true;
    judge_look(j);
}

void judge_receive(struct judge *j, int from, const void *data, size_t bytes) {
    switch (bytes ? *(const unsigned char *)data : 0) {
    case MESSAGE_CALLS: compare_receive(j, data, bytes); break;
    case MESSAGE_JOIN: members_receive(j, from, data, bytes); break;
    case MESSAGE_STATE: stuck_receive(j, from, data, bytes); break;
    default: break;
    }
}

/* What operations use of the host's memory may have become less. */
static void look_at_memory(struct judge *j) {
    if (j->outside.host_memory)
        j->outside.host_memory(j->outside.self, NULL, NULL);
}

/* The host knows more than before. */
static void learns(struct judge *j, const struct clock *clock) {
    clock_join(&j->known, clock);
    if (calls_seen(j)) // of other ranks, too
        detour_heard(j);
    look_at_memory(j);
}

void judge_failed(struct judge *j, bool cuda, const char *text, struct judge_at at) {
    struct latest *latest = j->thread ? j->thread->latest : NULL;
    bool this_one = latest && latest->at.call && at.call && latest->at.site == at.site &&
                    strcmp(latest->at.call, at.call) == 0;
    if (this_one && latest->in_group)
        groups_take_back(j);
    if (this_one)
        latest_undo(j, latest);
    look_at_memory(j);
    failed(j, text, at);
    if (!cuda)
        calls_failure(j, text, at);
}

void judge_not_told(struct judge *j) {
    latest_clear(j->thread ? j->thread->latest : NULL);
}

void judge_memory_made(struct judge *j, const void *start, size_t bytes,
                       enum judge_memory_kind kind, int device, int number,
                       struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct judge_range range = {start, bytes, true, true, 0};
    struct allocation *allocation = uses_made(j, start, bytes, kind, device, at);
    if (stream && stream->capture) {
        allocation->of_graph = true; // which makes and frees it at each launch
        graph_op(j, stream, &range, 1, true, at);
    } else if (stream) {
        struct use *use = use_new(at);
        use->makes = true;
        order_ready(j, stream);
        issue_op(j, stream->slot, &range, 1, use, NULL);
    }
}

void judge_memory_freed(struct judge *j, const void *start, int number,
                        struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct judge_memory memory;
    if (!stream) {
        uses_freed(j, start, -1, at);
    } else if (stream->capture) {
        if (judge_memory_find(j, start, &memory)) {
            struct judge_range range = {start, memory.bytes, true, true, 0};
            graph_op(j, stream, &range, 1, false, at);
        }
    } else {
        order_ready(j, stream);
        order_next(j->order, stream->slot);
        uses_freed(j, start, stream->slot, at);
    }
}

void judge_meets(struct judge *j, uint64_t number) {
    j->meetings = number;
    if (j->thread)
        j->thread->meeting = number;
}

void judge_stream_gone(struct judge *j, int number) {
    graph_stream_gone(j, number);
    order_stream_gone(j, number);
}

bool judge_op(struct judge *j, int number, const struct judge_range *ranges, int n,
              enum judge_op_kind kind, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct latest *latest = latest_begin(j, at);
    if (!stream)
        return false;
    background_uses_stream(j, number, at);
    uint64_t source = uses_source(ranges, n, kind);
    bool wrong = uses_check(j, ranges, n, kind, stream->capture != NULL, at) ||
                 uses_out_of_reach(j, ranges, n, kind, stream->device, at);
    groups_check_op(j, ranges, n, at);
    if (kind == JUDGE_KERNEL)
        j->uses->kernels = true;
    if (stream->capture) {
        graph_op(j, stream, ranges, n, false, at);
    } else {
        order_ready(j, stream);
        struct use *use = use_new(at);
        uint64_t nothing = wrong ? 0 : uses_nothing(j, ranges, n, at);
        use->source = nothing ? nothing : source;
        use->moves = kind == JUDGE_COPY || kind == JUDGE_COPY_ROWS || kind == JUDGE_SET;
        issue_op(j, stream->slot, ranges, n, use, latest);
    }
    return wrong;
}

void judge_waits_signals(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    if (!stream || stream->capture)
        return;
    uint64_t seq = order_next(j->order, stream->slot);
    struct position position = {
        .slot = stream->slot, .seq = seq, .clock = order_clock(j->order, stream->slot)};
    waits_signals_queued(j, position, at);
}

int judge_host_function(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    int function = function_new(j, stream && stream->capture);
    background_uses_stream(j, number, at);
    if (stream && stream->capture) {
        graph_function(j, stream, function, at);
    } else if (stream) {
        order_ready(j, stream);
        function_queued(j, function, stream->slot);
    }
    return function;
}

void judge_host_function_begins(struct judge *j, int function) {
    function_begins(j, function);
    calls_seen(j);
    look_at_memory(j);
}

void judge_host_function_ends(struct judge *j, int function) {
    function_ends(j, function);
    calls_seen(j);
}

void judge_record(struct judge *j, int number, int on, struct judge_at at) {
    struct event *event = order_event(j->order, number);
    struct stream *stream = order_stream(j->order, on);
    latest_begin(j, at);
    if (!event || !stream)
        return;
    background_uses_stream(j, on, at);
    event->graph = 0;
    if (stream->capture) {
        graph_record(j, stream, event);
        return;
    }
    order_ready(j, stream);
    order_record(j->order, event, stream->slot, at);
}

void judge_stream_waits(struct judge *j, int on, int number, struct judge_at at) {
    struct event *event = order_event(j->order, number);
    struct stream *stream = order_stream(j->order, on);
    latest_begin(j, at);
    if (!event || !stream ||
        ((event->graph || stream->capture) && graph_waits(j, stream, number)))
        return;
    order_ready(j, stream);
    order_wait(j->order, event, stream->slot, at);
}

void judge_joins(struct judge *j, const struct judge_join *join) {
    struct latest *latest = latest_begin(j, join->at);
    if (latest)
        latest->join = true;
    groups_makes(j, join->at);
    calls_joins(j, join);
}

void judge_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at) {
    if (how == JUDGE_DESTROYED || how == JUDGE_RESET || how == JUDGE_ABORTED)
        graph_comm_ends(j, comm, at);
    if (how == JUDGE_ABORTED || how == JUDGE_REVOKED)
        uses_aborted(j, comm);
    background_comm_ready(j, comm); // no more
    calls_comm_ends(j, comm, how, at);
    look_at_memory(j);
}

void judge_comm_complete(struct judge *j, int comm) {
    struct clock done = {0};
    calls_complete(j, comm, &done);
    learns(j, &done);
    clock_free(&done);
}

bool judge_call(struct judge *j, const struct judge_call *call) {
    bool wrong = uses_check_call(j, call, order_stream(j->order, call->stream));
    background_uses_comm(j, call->comm, call->at);
    calls_check_usable(j, call);
    if (groups_add(j, call)) {
        latest_begin(j, call->at)->in_group = true;
    } else {
        struct judge_call alone = *call;
        groups_issue(j, &alone, 1, false, latest_begin(j, call->at));
    }
    return wrong;
}

void judge_wait_stream(struct judge *j, int number, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (stream) {
        groups_check_open(j, number, at);
        background_uses_stream(j, number, at);
        order_awaited(j->order, stream, &clock);
    }
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

void judge_wait_device(struct judge *j, int device, struct judge_at at) {
    struct clock clock = {0};
    groups_check_open(j, -1, at);
    background_uses_device(j, device, at);
    order_device(j->order, device, &clock);
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

void judge_wait_end(struct judge *j, bool happened) {
    struct clock clock = {0};
    bool launches = waits_for_launch(j);
    waits_end(j, &clock);
    if (happened && clock.n)
        learns(j, &clock);
    else if (!launches)
        detour_heard(j);
    clock_free(&clock);
}

/* An answer: what was asked for has happened, or this thread may be one that asks for
 * ever. */
static void polls(struct judge *j, const struct clock *clock, bool done,
                  struct judge_at at) {
    if (!done) {
        waits_begin_order(j, clock, true, at);
        return;
    }
    waits_answered(j, at);
    learns(j, clock);
}

void judge_poll_stream(struct judge *j, int number, bool done, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (!stream)
        return;
    groups_check_open(j, number, at);
    if (done)
        background_asked(j, number);
    order_awaited(j->order, stream, &clock);
    polls(j, &clock, done, at);
    clock_free(&clock);
}

void judge_poll_event(struct judge *j, int number, bool done, struct judge_at at) {
    const struct event *event = order_event(j->order, number);
    if (event)
        polls(j, &event->clock, done, at);
}

void judge_wait_event(struct judge *j, int number, struct judge_at at) {
    const struct event *event = order_event(j->order, number);
    static const struct clock nothing;
    waits_begin_order(j, event ? &event->clock : &nothing, false, at);
}

void judge_poll_comm(struct judge *j, int comm, bool done, struct judge_at at) {
    detour_heard(j);
    if (!done) {
        waits_begin_poll_comm(j, comm, at);
        return;
    }
    background_comm_ready(j, comm);
    waits_answered(j, at);
    waits_asks(j);
}

void judge_finishes(struct judge *j, bool finalize, struct judge_at at) {
    waits_begin_finish(j, finalize, at);
    read_post(j);
}

void judge_exits(struct judge *j) {
    const struct judge_at nowhere = {"the end of the program", 0};
    groups_check_open(j, -1, nowhere);
    calls_check_unfinished(j);
}

void judge_left_behind(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    struct left streams = {0}, events = {0}, comms = {0};
    const struct comm_facts *comm;
    uses_left(j, &text);
    for (int s = 0; s < j->order->nstreams; s++)
        if (order_stream(j->order, s))
            count_left(&streams, order_stream(j->order, s)->made);
    for (int e = 0; e < j->order->nevents; e++)
        if (order_event(j->order, e))
            count_left(&events, order_event(j->order, e)->made);
    for (int c = 0; (comm = calls_comm(j, c)); c++)
        if (!comm->gone)
            count_left(&comms, comm->made);
    add_left(j, &text, "stream", streams);
    add_left(j, &text, "event", events);
    graphs_left(j, &text);
    add_left(j, &text, "communicator", comms);
    text_out(&text, out, bytes);
}
