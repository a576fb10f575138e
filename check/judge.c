/*
 * judge.c: the events, handed to the parts.
 */
#define _POSIX_C_SOURCE 200809L
#include "inside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lock {
    pthread_mutex_t mutex;
};

struct group { // that a thread has opened
    int depth, starts;
    struct judge_at at, newest; // where it was started, and was so once more
    struct judge_at makes;      // the first communicator that it makes; call NULL: none
    struct judge_call *calls;
    size_t ncalls, size;
    struct written { // meanwhile, by an operation that is queued at once
        const char *from, *to;
        size_t ncalls; // of the group before it
        struct judge_at at;
    } * written;
    size_t nwritten, written_size;
};

/* --- The judge -------------------------------------------------------------------- */

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

static void group_clear(struct group *group) {
    if (group) {
        free(group->calls);
        free(group->written);
    }
    free(group);
}

static void thread_free(struct judge *j, struct thread *thread) {
    waits_thread_gone(j, thread);
    group_clear(thread->group);
    told_free(thread->told);
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
    for (int s = 0; s < order_nstreams(j->order); s++)
        if (order_stream(j->order, s))
            graph_stream_gone(j, order_stream(j->order, s));
    graphs_free(j->graphs);
    functions_free(j->functions);
    later_free(j->later);
    uses_free(j->uses);
    order_free(j->order);
    reports_free(j->reports);
    failures_free(j->failures);
    shared_free(j);
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
    thread->told = must_alloc(sizeof *thread->told);
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
    shared_tell(j, j->last);
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
    case MESSAGE_SHARED: shared_receive(j, from, data, bytes); break;
    case MESSAGE_ANSWER: waits_receive(j, from, data, bytes); break;
    default: break;
    }
}

/* --- What the thread that is in tells --------------------------------------------- */

/* Empty; NULL: nobody is in who could say that it failed. */
static struct told *tells(struct judge *j, struct judge_at at) {
    struct told *told = j->thread ? j->thread->told : NULL;
    told_clear(told);
    if (told) {
        told->at = at;
        j->thread->asks_since = 0;
    }
    return told;
}

/* What operations use of the host's memory may have become less. */
static void look_at_memory(struct judge *j) {
    if (j->outside.host_memory)
        j->outside.host_memory(j->outside.self, NULL, NULL);
}

/* The host knows more than before. */
static void learns(struct judge *j, const struct clock *clock) {
    clock_join(&j->known, clock);
    shared_ends(j, &j->known);
    if (calls_seen(j)) // of other ranks, too
        detour_heard(j);
    uses_known(j);
    look_at_memory(j);
}

void judge_failed(struct judge *j, bool cuda, const char *text, struct judge_at at) {
    struct told *told = j->thread ? j->thread->told : NULL;
    struct group *group = j->thread ? j->thread->group : NULL;
    bool this_one = told && told->at.call && at.call && told->at.site == at.site &&
                    strcmp(told->at.call, at.call) == 0;
    if (this_one && told->in_group && group && group->ncalls)
        group->ncalls--;
    if (this_one)
        told_undo(j, told);
    look_at_memory(j);
    failed(j, text, at);
    if (!cuda)
        calls_failure(j, text, at);
}

void judge_not_told(struct judge *j) {
    told_clear(j->thread ? j->thread->told : NULL);
}

void judge_looked(struct judge *j) {
    failed_looked(j);
}

/* --- Memory ----------------------------------------------------------------------- */

void judge_memory_made(struct judge *j, const void *start, size_t bytes,
                       enum judge_memory_kind kind, int device, int number,
                       struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct judge_range range = {start, bytes, true, true, 0};
    struct allocation *allocation = uses_made(j, start, bytes, kind, device, at);
    if (stream && stream->capture) {
        uses_of_graph(allocation);
        graph_op(j, stream, &range, 1, true, at);
    } else if (stream) {
        struct use *use = use_new(at);
        use->makes = true;
        order_ready(j, stream);
        issue_op(j, stream->slot, &range, 1, use, NULL);
    }
}

static bool overlaps(const struct judge_range *range, const char *from, const char *to) {
    const char *start = range->start;
    return start < to && from < start + range->bytes;
}

/* The first call of an open group that uses some of the range; `writes`: that writes it.
 * NULL: none. */
static const struct judge_call *in_group(struct judge *j, const struct group *group,
                                         const void *start, size_t bytes, bool writes) {
    struct judge_range ranges[3];
    const char *from = start, *to = from + bytes;
    for (size_t i = 0; group && i < group->ncalls; i++)
        for (int n = uses_of_call(j, &group->calls[i], ranges); n-- > 0;)
            if ((ranges[n].write || !writes) && overlaps(&ranges[n], from, to))
                return &group->calls[i];
    return NULL;
}

/* A call that waits in an open group for memory that is freed. */
static void check_groups(struct judge *j, const void *start, struct judge_at at) {
    struct judge_memory memory;
    const struct judge_call *call = NULL;
    if (!uses_find(j, start, &memory))
        return;
    for (const struct thread *t = j->threads; t && !call; t = t->next)
        call = in_group(j, t->group, memory.start, memory.bytes, false);
    if (!call)
        return;
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: %s frees a buffer of a group that has not ended\n"
             "  rank %d on %s: %s at %s\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where));
    text_add(&text, "  in the group: %s at %s\n", call_words(words, call),
             place(j, call->at.site, where));
    text_add(
        &text,
        "  Hint: the calls of a group begin at ncclGroupEnd: free what they use behind"
        " it, when they are done.\n");
    report(j, &text, true, mixed(at.site, call->at.site));
}

/* An operation, which is queued at once, `does` something to what a call of the open
 * group is to write or to send (`used`). `first`: what has written that; NULL: the call
 * will. */
static void report_in_group(struct judge *j, const struct group *group,
                            const struct judge_call *call, const struct judge_at *first,
                            const char *does, const char *used, const char *hint,
                            struct judge_at at) {
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "race: %s %s, inside a group, what the group is to %s\n"
             "  rank %d on %s: %s at %s\n",
             at.call, does, used, j->rank, j->host, at.call, place(j, at.site, where));
    if (first)
        text_add(&text, "  written before: %s at %s\n", first->call,
                 place(j, first->site, where));
    text_add(&text, "  in the group: %s at %s", call_words(words, call),
             place(j, call->at.site, where));
    text_add(&text, "; it was started at %s, and is open\n",
             place(j, group->at.site, where));
    text_add(&text, "  Hint: the calls of a group are queued by ncclGroupEnd%s\n", hint);
    report(j, &text, true, mixed(at.site, call->at.site));
}

/* What a call of this thread's open group is to write, when it is queued. */
static void check_early(struct judge *j, const struct judge_range *ranges, int n,
                        struct judge_at at) {
    const struct group *group = j->thread ? j->thread->group : NULL;
    const struct judge_call *call = NULL;
    for (int r = 0; r < n && !call; r++)
        if (!ranges[r].write && ranges[r].bytes)
            call = in_group(j, group, ranges[r].start, ranges[r].bytes, true);
    if (call)
        report_in_group(j, group, call, NULL, "reads", "write",
                        ": what reads their results comes behind it.", at);
}

/* The call of the group, made after `first` was written, that is to read all bytes which
 * `first` and [from, to) have in common with it; NULL: none. */
static const struct judge_call *reads_first(struct judge *j, const struct group *group,
                                            const struct written *first, const char *from,
                                            const char *to) {
    struct judge_range ranges[3];
    for (size_t i = first->ncalls; i < group->ncalls; i++)
        for (int n = uses_of_call(j, &group->calls[i], ranges); n-- > 0;) {
            const char *start = ranges[n].start, *end = start + ranges[n].bytes;
            start = start > first->from ? start : first->from;
            end = end < first->to ? end : first->to;
            if (!ranges[n].write && start < end && from <= start && end <= to)
                return &group->calls[i];
        }
    return NULL;
}

/* The call of the group that is not to send any more what was written `first`, if [from,
 * to) is written now; NULL: none. */
static const struct judge_call *lost(struct judge *j, const struct group *group,
                                     const char *from, const char *to,
                                     const struct written **first) {
    const struct judge_call *call = NULL;
    for (size_t i = 0; i < group->nwritten && !call; i++) {
        *first = &group->written[i];
        call = reads_first(j, group, *first, from, to);
    }
    return call;
}

static bool reads_some(const struct judge_range *ranges, int n, const char *from,
                       const char *to) {
    for (int i = 0; i < n; i++)
        if (!ranges[i].write && overlaps(&ranges[i], from, to))
            return true;
    return false;
}

/* A buffer is filled, a call of this thread's open group is to send that, and it is
 * filled anew before the group ends: what came first is never sent. (Who adds to it means
 * the sum.) */
static void check_refilled(struct judge *j, const struct judge_range *ranges, int n,
                           struct judge_at at) {
    enum { MOST = 256 };
    struct group *group = j->thread ? j->thread->group : NULL;
    for (int r = 0; group && r < n; r++) {
        const char *from = ranges[r].start, *to = from + ranges[r].bytes;
        const struct written *first = NULL;
        if (!ranges[r].write || from == to)
            continue;
        const struct judge_call *call =
            reads_some(ranges, n, from, to) ? NULL : lost(j, group, from, to, &first);
        if (call) {
            report_in_group(j, group, call, &first->at, "overwrites", "send",
                            ", and send what lies there then: a buffer for each.", at);
            return;
        }
        if (group->nwritten == MOST)
            continue;
        ROOM(group->written, group->nwritten, &group->written_size);
        group->written[group->nwritten++] = (struct written){from, to, group->ncalls, at};
    }
}

void judge_memory_overrun(struct judge *j, const void *start, size_t behind,
                          struct judge_at at) {
    struct judge_memory memory;
    char where[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    if (!uses_find(j, start, &memory))
        return;
    text_add(
        &text,
        "memory: the host has written behind the end of a buffer\n"
        "  rank %d on %s: found by %s at %s\n"
        "  the buffer: %zu bytes made by %s at %s; written was byte %zu\n"
        "  Hint: byte %zu is the last. Does a loop make a step too many, or is a size"
        " counted in something else?\n",
        j->rank, j->host, at.call, place(j, at.site, where), memory.bytes,
        memory.made.call, place(j, memory.made.site, there), memory.bytes + behind - 1,
        memory.bytes - 1);
    report(j, &text, true, mixed(memory.made.site, 28));
}

void judge_registered_freed(struct judge *j, struct judge_at registered,
                            struct judge_at at) {
    char where[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: %s frees a registered buffer\n"
             "  rank %d on %s: %s at %s\n"
             "  registered by %s at %s\n"
             "  Hint: take the registration back first (%s): NCCL may go on using what"
             " lies there then.\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where),
             registered.call, place(j, registered.site, there),
             strcmp(registered.call, "ncclCommWindowRegister") == 0
                 ? "ncclCommWindowDeregister"
                 : "ncclCommDeregister");
    report(j, &text, true, mixed(at.site, registered.site));
}

void judge_memory_freed(struct judge *j, const void *start, int number,
                        struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct judge_memory memory;
    check_groups(j, start, at);
    if (!stream) {
        uses_freed(j, start, -1, at);
    } else if (stream->capture) {
        if (uses_find(j, start, &memory)) {
            struct judge_range range = {start, memory.bytes, true, true, 0};
            graph_op(j, stream, &range, 1, false, at);
        }
    } else {
        order_ready(j, stream);
        order_next(j->order, stream->slot);
        uses_freed(j, start, stream->slot, at);
    }
}

bool judge_memory_find(struct judge *j, const void *address, struct judge_memory *out) {
    return uses_find(j, address, out);
}

void judge_memory_open(struct judge *j, const void *address) {
    uses_open(j, address);
}

void judge_peer_access(struct judge *j, int device, int peer, bool on) {
    uses_peer_access(j, device, peer, on);
}

void judge_memory_shared(struct judge *j, const void *address, uint64_t id) {
    uses_shared(j, address, id);
}

void judge_meets(struct judge *j, uint64_t number) {
    j->meetings = number;
    if (j->thread)
        j->thread->meeting = number;
}

void judge_order_unseen(struct judge *j) {
    shared_unseen(j);
}

bool judge_host_uses(struct judge *j, const void *start, size_t bytes, bool write,
                     bool device_too, struct judge_at at) {
    return uses_host(j, start, bytes, write, device_too, at);
}

bool judge_host_faults(struct judge *j, const void *address, bool write, bool write_known,
                       uint64_t site) {
    return uses_faults(j, address, write, write_known, site);
}

bool judge_host_may_fault(struct judge *j, const void *address) {
    return uses_knew(j, address);
}

bool judge_host_is_early(struct judge *j, const void *address, bool write) {
    return uses_early(j, address, write);
}

int judge_memory_lent(struct judge *j, const void *start, size_t bytes, bool write,
                      struct judge_at at) {
    return uses_lent(j, start, bytes, write, at);
}

void judge_memory_back(struct judge *j, int lent) {
    uses_back(j, lent);
}

void judge_memory_in_use(struct judge *j, const void *start,
                         void (*each)(void *self, const void *start, size_t bytes,
                                      bool write),
                         void *self) {
    uses_each(j, start, each, self);
}

/* --- Streams, operations, events -------------------------------------------------- */

int judge_stream_made(struct judge *j, enum judge_stream_kind kind, int device,
                      struct judge_at at) {
    return order_stream_made(j, kind, device, at);
}

void judge_stream_gone(struct judge *j, int number) {
    struct stream *stream = order_stream(j->order, number);
    if (stream)
        graph_stream_gone(j, stream);
    order_stream_gone(j, number);
}

bool judge_op(struct judge *j, int number, const struct judge_range *ranges, int n,
              bool kernel, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct told *told = tells(j, at);
    if (!stream)
        return false;
    later_uses_stream(j, number, at);
    uint64_t source = uses_source(ranges, n, at);
    bool wrong = uses_check(j, ranges, n, source, stream->capture != NULL, at) ||
                 uses_out_of_reach(j, ranges, n, stream->device, at);
    check_early(j, ranges, n, at);
    check_refilled(j, ranges, n, at);
    if (kernel)
        uses_kernel(j);
    if (stream->capture) {
        graph_op(j, stream, ranges, n, false, at);
    } else {
        order_ready(j, stream);
        struct use *use = use_new(at);
        uint64_t nothing = wrong ? 0 : uses_nothing(j, ranges, n, at);
        use->source = nothing ? nothing : source;
        issue_op(j, stream->slot, ranges, n, use, told);
    }
    return wrong;
}

int judge_host_function(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    int function = function_new(j, stream && stream->capture);
    later_uses_stream(j, number, at);
    if (stream && stream->capture) {
        graph_function(j, stream, function, at);
    } else if (stream) {
        order_ready(j, stream);
        function_queued(j, function, stream->slot, at);
    }
    return function;
}

void judge_host_function_begins(struct judge *j, int function) {
    function_begins(j, function);
    shared_ends(j, &j->known);
    calls_seen(j);
    look_at_memory(j);
}

void judge_host_function_ends(struct judge *j, int function) {
    function_ends(j, function);
    calls_seen(j);
}

void judge_host_function_calls(struct judge *j, struct judge_at at) {
    const struct judge_at *function = function_runs(j);
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: a function of cudaLaunchHostFunc calls %s\n"
             "  rank %d on %s: %s at %s\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where));
    if (function)
        text_add(&text, "  the function: queued with %s at %s\n", function->call,
                 place(j, function->site, where));
    text_add(&text, "  Hint: a function on a stream may not call CUDA, nor NCCL: it "
                    "would wait for the"
                    " stream that\n"
                    "        waits for it. Let it tell a thread of the program, which "
                    "makes the call.\n");
    report(j, &text, true, mixed(at.site, 20));
}

void report_gone(struct judge *j, const char *what, struct judge_at made,
                 struct judge_at at, const char *state, const char *hint, uint64_t kind) {
    char where[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: %s\n"
             "  rank %d on %s: %s at %s\n"
             "  then comes %s at %s%s\n"
             "  Hint: %s\n",
             what, j->rank, j->host, made.call, place(j, made.site, where), at.call,
             place(j, at.site, there), state, hint);
    report(j, &text, true, mixed(made.site, kind));
}

/* "The device associated with a particular cuBLAS context is assumed to remain unchanged
 * between the corresponding cublasCreate() and cublasDestroy() calls" (cuBLAS, "cuBLAS
 * Context"). */
bool judge_handle_device(struct judge *j, int number, int device, struct judge_at made,
                         struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    if (!stream || !stream->made.call || stream->device == device)
        return false;
    char where[JUDGE_PLACE], there[JUDGE_PLACE], handle[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: the stream of %s belongs to another device than its handle\n"
             "  rank %d on %s: %s at %s\n"
             "  the stream: on device %d, made at %s\n"
             "  the handle: on device %d, made by %s at %s\n"
             "  Hint: a handle belongs to the device that was set when it was made:"
             " cudaSetDevice, and then\n"
             "        %s, for each device.\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where), stream->device,
             place(j, stream->made.site, there), device, made.call,
             place(j, made.site, handle), made.call);
    report(j, &text, true, mixed(at.site, 34));
    return true;
}

int judge_event_made(struct judge *j, int device, struct judge_at at) {
    (void)device;
    return order_event_made(j->order, at);
}

void judge_event_gone(struct judge *j, int event) {
    order_event_gone(j->order, event);
}

void judge_record(struct judge *j, int number, int on, struct judge_at at) {
    struct event *event = order_event(j->order, number);
    struct stream *stream = order_stream(j->order, on);
    tells(j, at);
    if (!event || !stream)
        return;
    later_uses_stream(j, on, at);
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
    tells(j, at);
    if (!event || !stream ||
        ((event->graph || stream->capture) && graph_waits(j, stream, number)))
        return;
    order_ready(j, stream);
    order_wait(j->order, event, stream->slot, at);
}

void judge_capture_begins(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    if (stream && !stream->capture)
        graph_begins(j, stream, at);
}

int judge_capture_ends(struct judge *j, int number, bool success) {
    struct stream *stream = order_stream(j->order, number);
    return stream ? graph_ends(j, stream, success) : -1;
}

int judge_graph_instantiated(struct judge *j, int graph, struct judge_at at) {
    return graph_instantiated(j, graph, at);
}

void judge_graph_launched(struct judge *j, int executable, int number,
                          struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    if (!stream)
        return;
    later_uses_stream(j, number, at);
    order_ready(j, stream);
    graph_launched(j, executable, stream, at);
}

void judge_graph_gone(struct judge *j, int graph) {
    graph_gone(j, graph);
}

void judge_executable_gone(struct judge *j, int executable) {
    graph_executable_gone(j, executable);
}

/* --- Communicators and calls ------------------------------------------------------ */

void judge_joins(struct judge *j, const struct judge_join *join) {
    struct told *told = tells(j, join->at);
    if (told)
        told->join = true;
    if (j->thread && j->thread->group && !j->thread->group->makes.call)
        j->thread->group->makes = join->at;
    calls_joins(j, join);
}

void judge_id_made(struct judge *j, uint64_t id, struct judge_at at) {
    calls_id_made(j, id, at);
}

int judge_comm_made(struct judge *j, uint64_t id, int rank, int nranks, int device,
                    struct judge_at at) {
    return calls_comm_made(j, id, rank, nranks, device, at);
}

uint64_t judge_split_id(struct judge *j, int comm, int color) {
    return calls_split_id(j, comm, color);
}

/* What is queued and not known to be done. */
static void check_unfinished(struct judge *j) {
    struct judge_call first[4];
    uint64_t index[4];
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    int n = calls_unfinished(j, -1, first, index);
    struct text text = {0};
    if (n == 0)
        return;
    text_add(&text,
             "missing: the end of the program comes before queued operations are known to"
             " be done\n"
             "  rank %d on %s: the end of the program\n",
             j->rank, j->host);
    for (int i = 0; i < n && i < 4; i++) {
        const struct comm_facts *of = calls_comm(j, first[i].comm);
        text_add(&text, "  queued: %s at %s, operation %llu on communicator %d\n",
                 call_words(words, &first[i]), place(j, first[i].at.site, where),
                 (unsigned long long)index[i], of ? of->number : 0);
    }
    if (n > 4)
        text_add(&text, "  and %d more\n", n - 4);
    text_add(&text,
             "  Hint: call cudaStreamSynchronize before. The real NCCL may not even have"
             " started them.\n");
    report(j, &text, true, mixed(0, 21));
}

static void spoil(struct judge *j, int comm, struct judge_at at) {
    struct judge_call first[4];
    uint64_t index[4];
    int n = calls_unfinished(j, comm, first, index);
    for (int i = 0; i < n && i < 4; i++)
        uses_spoilt(j, &first[i], at);
}

void judge_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at) {
    if (how == JUDGE_DESTROYED)
        graph_comm_ends(j, comm, at);
    if (how == JUDGE_ABORTED || how == JUDGE_REVOKED) {
        spoil(j, comm, at);
        uses_aborted(j, comm);
    }
    later_comm_ready(j, comm); // no more
    calls_comm_ends(j, comm, how, at);
    look_at_memory(j);
}

bool judge_comm_unfinished(struct judge *j, int comm) {
    struct judge_call first[4];
    uint64_t index[4];
    return calls_unfinished(j, comm, first, index) > 0;
}

void judge_comm_complete(struct judge *j, int comm) {
    struct clock done = {0};
    calls_complete(j, comm, &done);
    learns(j, &done);
    clock_free(&done);
}

void judge_comm_used_before(struct judge *j, struct judge_at made, struct judge_at at) {
    char where[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: %s uses a communicator that is not ready\n"
             "  rank %d on %s: %s at %s\n"
             "  made by %s at %s, which does not wait for the others (blocking = 0)\n"
             "  Hint: ask ncclCommGetAsyncError until it is no longer ncclInProgress.\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where), made.call,
             place(j, made.site, there));
    report(j, &text, true, mixed(at.site, 22));
}

void judge_comm_used_after(struct judge *j, int comm, struct judge_at at) {
    calls_comm_used_after(j, comm, at);
}

void judge_two_threads(struct judge *j, int number, struct judge_at other,
                       struct judge_at at) {
    const struct comm_facts *comm = calls_comm(j, number);
    char here[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: two threads call NCCL on one communicator at the same time\n"
             "  rank %d on %s: %s at %s\n"
             "  meanwhile in another thread: %s at %s\n"
             "  communicator %d: rank %d of %d ranks\n"
             "  Hint: a communicator for each thread, or a lock around what each of them"
             " does with it.\n"
             "        The real NCCL may hang here, crash, or add up wrong numbers.\n",
             j->rank, j->host, at.call, place(j, at.site, here), other.call,
             place(j, other.site, there), comm->number, comm->rank, comm->nranks);
    report(j, &text, true, mixed(at.site, 23));
}

/* Puts calls behind what their streams hold, or into the graphs that these are captured
 * into. */
static void issue(struct judge *j, struct judge_call *calls, size_t n, bool grouped,
                  struct told *told) {
    int left = graph_calls(j, calls, (int)n);
    struct issued_call alone, *issued = &alone;
    later_answered(j, false); // one that was not made
    for (int i = 0; i < left; i++)
        later_called(j, &calls[i]);
    if (left > 1)
        issued = must_alloc((size_t)left * sizeof *issued);
    // The default stream last: what only it waits for comes before no other stream's
    // call.
    for (int i = 0; i < 2 * left; i++) {
        const struct judge_call *call = &calls[i % left];
        struct stream *stream = order_stream(j->order, call->stream);
        if (stream && (stream->kind == JUDGE_LEGACY) == (i >= left))
            order_ready(j, stream);
        issued[i % left] = (struct issued_call){*call, stream ? stream->slot : -1, 0};
    }
    if (left)
        issue_calls(j, issued, left, grouped, 0, told);
    if (left > 1)
        free(issued);
}

void judge_group_starts(struct judge *j, struct judge_at at) {
    if (!j->thread)
        return;
    if (!j->thread->group)
        j->thread->group = must_alloc(sizeof *j->thread->group);
    if (j->thread->group->depth++ == 0)
        j->thread->group->at = at;
    j->thread->group->newest = at;
    j->thread->group->starts++;
}

/* NCCL User Guide, "Group Calls": "calls to ncclCommInitRank() cannot be merged with
 * others". */
static void check_merged(struct judge *j, const struct group *group) {
    const struct judge_call *call = NULL;
    for (size_t i = 0; i < group->ncalls && !call; i++)
        if (group->calls[i].stream >= 0)
            call = &group->calls[i];
    if (!group->makes.call || !call)
        return;
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: one group makes a communicator and calls another\n"
             "  rank %d on %s: %s at %s\n",
             j->rank, j->host, group->makes.call, place(j, group->makes.site, where));
    text_add(&text, "  in the same group: %s at %s\n", call_words(words, call),
             place(j, call->at.site, where));
    text_add(&text, "  Hint: calls that make communicators may share a group, but with no"
                    " other calls: end it before.\n");
    report(j, &text, true, mixed(group->makes.site, call->at.site));
}

void judge_group_ends(struct judge *j, struct judge_at at) {
    struct group *group = j->thread ? j->thread->group : NULL;
    if (!group || --group->depth > 0)
        return;
    struct told *told = tells(j, at);
    check_merged(j, group);
    if (group->ncalls)
        issue(j, group->calls, group->ncalls, true, told);
    group_clear(group);
    j->thread->group = NULL;
}

bool judge_call(struct judge *j, const struct judge_call *call) {
    struct group *group = j->thread ? j->thread->group : NULL;
    bool wrong = uses_check_call(j, call, order_stream(j->order, call->stream));
    later_uses_comm(j, call->comm, call->at);
    if (group) {
        ROOM(group->calls, group->ncalls, &group->size);
        group->calls[group->ncalls++] = *call;
        tells(j, call->at)->in_group = true;
    } else {
        struct judge_call alone = *call;
        issue(j, &alone, 1, false, tells(j, call->at));
    }
    return wrong;
}

void judge_call_answered(struct judge *j, bool in_progress) {
    later_answered(j, in_progress);
}

/* --- Waits ------------------------------------------------------------------------ */

/* A group that holds calls for `stream` (-1: any, or none) and was not ended. */
static void check_group_open(struct judge *j, int stream, const char *name, bool at_known,
                             struct judge_at at) {
    const struct group *group = j->thread ? j->thread->group : NULL;
    const struct judge_call *first = NULL;
    size_t n = 0;
    for (size_t i = 0; group && i < group->ncalls; i++)
        if (stream < 0 || group->calls[i].stream == stream) {
            first = first ? first : &group->calls[i];
            n++;
        }
    if (!group || (stream >= 0 && n == 0))
        return;
    char words[JUDGE_PLACE], where[JUDGE_PLACE], here[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: a group was started and not ended\n"
             "  rank %d on %s: ncclGroupStart at %s, still open %s %s",
             j->rank, j->host, place(j, group->at.site, where), at_known ? "in" : "at",
             name);
    text_add(&text, at_known ? " at %s\n" : "\n", place(j, at.site, here));
    if (group->starts > 1)
        text_add(&text,
                 "  since then %d more ncclGroupStart, the newest at %s, and only %d"
                 " ncclGroupEnd\n",
                 group->starts - 1, place(j, group->newest.site, where),
                 group->starts - group->depth);
    if (first)
        text_add(&text, "  %zu call%s wait%s in it, the first: %s at %s\n", n,
                 n == 1 ? "" : "s", n == 1 ? "s" : "", call_words(words, first),
                 place(j, first->at.site, where));
    text_add(&text,
             "  Hint: nothing of a group begins before ncclGroupEnd. The real NCCL goes"
             " on without it.\n");
    report(j, &text, true, mixed(group->at.site, at.site));
}

void judge_wait_stream(struct judge *j, int number, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (stream) {
        check_group_open(j, number, at.call, true, at);
        later_uses_stream(j, number, at);
        order_awaited(j->order, stream, &clock);
    }
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

void judge_wait_event(struct judge *j, int number, struct judge_at at) {
    const struct event *event = order_event(j->order, number);
    static const struct clock nothing;
    waits_begin_order(j, event ? &event->clock : &nothing, false, at);
}

void judge_wait_device(struct judge *j, int device, struct judge_at at) {
    struct clock clock = {0};
    check_group_open(j, -1, at.call, true, at);
    later_uses_device(j, device, at);
    order_device(j->order, device, &clock);
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

void judge_wait_launch(struct judge *j, struct judge_at at) {
    waits_begin_launch(j, at);
}

void judge_wait_leave(struct judge *j, int comm, struct judge_at at) {
    waits_begin_leave(j, comm, at);
}

void judge_wait_mpi(struct judge *j, const void *whom, int peer, enum judge_way way,
                    struct judge_at at) {
    waits_begin_mpi(j, whom, peer, way, false, at);
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
    waits_end(j, NULL);
    learns(j, clock);
}

void judge_poll_stream(struct judge *j, int number, bool done, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (!stream)
        return;
    check_group_open(j, number, at.call, true, at);
    if (done)
        later_asked(j, number);
    order_awaited(j->order, stream, &clock);
    polls(j, &clock, done, at);
    clock_free(&clock);
}

void judge_poll_event(struct judge *j, int number, bool done, struct judge_at at) {
    const struct event *event = order_event(j->order, number);
    if (event)
        polls(j, &event->clock, done, at);
}

void judge_poll_mpi(struct judge *j, bool done, struct judge_at at) {
    detour_heard(j);
    if (done)
        waits_end(j, NULL);
    else
        waits_begin_mpi(j, NULL, JUDGE_ANY, JUDGE_MORE, true, at);
}

void judge_poll_comm(struct judge *j, int comm, bool done, struct judge_at at) {
    detour_heard(j);
    if (!done) {
        waits_begin_poll_comm(j, comm, at);
        return;
    }
    later_comm_ready(j, comm);
    waits_end(j, NULL);
    waits_asks(j);
}

void judge_poll_join(struct judge *j, const struct judge_join *join, struct judge_at at) {
    detour_heard(j);
    waits_begin_poll_join(j, join, at);
}

/* --- Ends ------------------------------------------------------------------------- */

void judge_finishes(struct judge *j, bool finalize, struct judge_at at) {
    waits_begin_finish(j, finalize, at);
    shared_tell(j, true);
    read_post(j);
}

void judge_exits(struct judge *j) {
    const struct judge_at nowhere = {"the end of the program", 0};
    check_group_open(j, -1, nowhere.call, false, nowhere);
    check_unfinished(j);
}

static void hand_out(struct text *text, char *out, size_t bytes) {
    snprintf(out, bytes, "%s", text->at ? text->at : "");
    free(text->at);
}

void judge_left_behind(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    size_t n = 0;
    uint64_t site = 0;
    uses_left(j, &text);
    for (int s = 0; s < order_nstreams(j->order); s++) {
        const struct stream *stream = order_stream(j->order, s);
        if (stream && stream->made.call) {
            n++;
            site = stream->made.site;
        }
    }
    add_left(j, &text, "stream", n, site);
    n = 0;
    for (int e = 0; e < order_nevents(j->order); e++) {
        const struct event *event = order_event(j->order, e);
        if (event) {
            n++;
            site = event->made.site;
        }
    }
    add_left(j, &text, "event", n, site);
    graphs_left(j, &text);
    n = 0;
    const struct comm_facts *comm;
    for (int c = 0; (comm = calls_comm(j, c)); c++)
        if (!comm->gone) {
            n++;
            site = comm->made.site;
        }
    add_left(j, &text, "communicator", n, site);
    hand_out(&text, out, bytes);
}

void judge_unwritten(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    uses_unwritten(j, &text);
    hand_out(&text, out, bytes);
}

void judge_failures(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    add_unlooked(j, &text);
    hand_out(&text, out, bytes);
}
