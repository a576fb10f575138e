/*
 * graphs.c: captures and what a launch of them does.
 *
 * A graph is a list of steps, in the order in which they were captured. Each branch,
 * which is what one stream contributed, has a slot of its own: a launch forks the stream
 * into the branches, and the stream comes after the ends of all. "Each launch is ordered
 * … behind any previous launches of graphExec" (CUDA Runtime API, cudaGraphLaunch).
 */
#include "history/graphs.h"

#include "history/memory.h"
#include "history/functions.h"
#include "history/background.h"
#include "history/issue.h"
#include "ranks/comms.h"
#include "say/words.h"

struct step {
    enum step_kind {
        STEP_OP,
        STEP_FUNCTION,
        STEP_CALLS,
        STEP_RECORD,
        STEP_WAIT,
        STEP_WAIT_EXTERNAL
    } kind;
    int branch;
    int number; // of the function, the event's snapshot, or the event
    bool makes; // as those of struct use
    int awaits;
    bool grouped;
    struct judge_at at;
    struct judge_range *ranges; // of all calls, too
    uint64_t *serials;          // of the allocations that they lie in
    int nranges;
    struct issued_call *calls; // slot: the branch
    int ncalls;
};

struct graph {
    int holders; // itself, and what can launch it
    struct judge_at made;
    struct step *steps;
    size_t nsteps, size;
    int nbranches, nsnapshots;
};

struct capture {
    uint64_t serial;
    struct graph *graph;
};

struct executable {
    struct graph *graph;
    struct judge_at made;
    int *slots;       // per branch
    struct clock end; // of the newest launch
};

static void graph_drop(void *held) {
    struct graph *graph = held;
    if (--graph->holders > 0)
        return;
    for (size_t i = 0; i < graph->nsteps; i++) {
        free(graph->steps[i].ranges);
        free(graph->steps[i].serials);
        free(graph->steps[i].calls);
    }
    free(graph->steps);
    free(graph);
}

static void executable_free(void *gone) {
    struct executable *executable = gone;
    graph_drop(executable->graph);
    clock_free(&executable->end);
    free(executable->slots);
    free(executable);
}

void graphs_free(struct graphs *graphs) {
    numbers_clear(&graphs->graphs, graph_drop);
    numbers_clear(&graphs->executables, executable_free);
    free(graphs);
}

void judge_capture_begins(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    if (!stream || stream->capture)
        return;
    struct capture *capture = must_alloc(sizeof *capture);
    capture->serial = ++j->graphs->captures;
    capture->graph = must_alloc(sizeof *capture->graph);
    capture->graph->holders = 1;
    capture->graph->made = at;
    stream->capture = capture;
    stream->branch = capture->graph->nbranches++;
}

static void leave(struct judge *j, const struct capture *capture) {
    for (size_t s = 0; s < j->order->streams.n; s++) {
        struct stream *stream = j->order->streams.at[s];
        if (stream && stream->capture == capture)
            stream->capture = NULL;
    }
}

int judge_capture_ends(struct judge *j, int on, bool success) {
    struct stream *stream = order_stream(j->order, on);
    struct capture *capture = stream ? stream->capture : NULL;
    int number = -1;
    if (!capture)
        return -1;
    leave(j, capture);
    if (success)
        number = numbers_add(&j->graphs->graphs, capture->graph);
    else
        graph_drop(capture->graph);
    free(capture);
    return number;
}

void graph_stream_gone(struct judge *j, int number) {
    struct stream *stream = order_stream(j->order, number);
    const struct capture *capture = stream ? stream->capture : NULL;
    for (size_t s = 0; capture && s < j->order->streams.n; s++) {
        const struct stream *other = j->order->streams.at[s];
        if (other && other != stream && other->capture == capture) {
            stream->capture = NULL;
            return;
        }
    }
    judge_capture_ends(j, number, false);
}

static struct step *step_new(struct stream *stream, enum step_kind kind,
                             struct judge_at at) {
    struct graph *graph = stream->capture->graph;
    ROOM(graph->steps, graph->nsteps, &graph->size);
    struct step *step = &graph->steps[graph->nsteps++];
    *step = (struct step){.kind = kind, .branch = stream->branch, .at = at};
    return step;
}

static void step_ranges(struct judge *j, struct step *step,
                        const struct judge_range *ranges, int n) {
    size_t all = (size_t)(step->nranges + n);
    step->ranges = must_grow(step->ranges, all * sizeof *ranges);
    step->serials = must_grow(step->serials, all * sizeof *step->serials);
    for (int i = 0; i < n; i++) {
        step->ranges[step->nranges] = ranges[i];
        step->serials[step->nranges++] = uses_serial(j, ranges[i].start);
    }
}

void graph_op(struct judge *j, struct stream *stream, const struct judge_range *ranges,
              int n, bool makes, int awaits, struct judge_at at) {
    struct step *step = step_new(stream, STEP_OP, at);
    step->makes = makes;
    step->awaits = awaits;
    step_ranges(j, step, ranges, n);
}

void graph_function(struct stream *stream, int function, struct judge_at at) {
    step_new(stream, STEP_FUNCTION, at)->number = function;
}

void graph_record(struct stream *stream, struct event *event) {
    struct graph *graph = stream->capture->graph;
    event->graph = stream->capture->serial;
    event->snapshot = graph->nsnapshots;
    step_new(stream, STEP_RECORD, event->made)->number = graph->nsnapshots++;
}

bool graph_waits(struct judge *j, struct stream *stream, int number) {
    struct capture *capture = stream->capture;
    const struct event *event = order_event(j->order, number);
    if (!event->graph) {
        if (!capture)
            return false;
        // cudaEventWaitExternal, or it is an error
        step_new(stream, STEP_WAIT_EXTERNAL, event->made)->number = number;
        return true;
    }
    for (size_t s = 0; s < j->order->streams.n && !capture; s++) {
        const struct stream *other = j->order->streams.at[s];
        if (other && other->capture && other->capture->serial == event->graph)
            capture = other->capture;
    }
    if (!capture || capture->serial != event->graph)
        return true;
    if (!stream->capture) {
        stream->capture = capture;
        stream->branch = capture->graph->nbranches++;
    }
    step_new(stream, STEP_WAIT, event->made)->number = event->snapshot;
    return true;
}

int graph_calls(struct judge *j, struct judge_call *calls, int n) {
    int left = 0;
    struct graph *graph = NULL;
    uint64_t group = n > 1 ? ++j->groups : 0;
    for (int i = 0; i < n; i++) {
        struct stream *stream = order_stream(j->order, calls[i].stream);
        if (!stream || !stream->capture) {
            calls[left++] = calls[i];
            continue;
        }
        // All calls of the group that belong to this graph are one step.
        if (graph != stream->capture->graph)
            step_new(stream, STEP_CALLS, calls[i].at);
        graph = stream->capture->graph;
        struct step *step = &graph->steps[graph->nsteps - 1];
        step->grouped = n > 1;
        step->calls =
            must_grow(step->calls, (size_t)(step->ncalls + 1) * sizeof *step->calls);
        step->calls[step->ncalls++] =
            (struct issued_call){calls[i], stream->branch, true};
        calls_captured(j, &calls[i], group);
        struct judge_range ranges[CALL_RANGES];
        int nranges = uses_of_call(j, &calls[i], ranges);
        step_ranges(j, step, ranges, nranges);
    }
    return left;
}

void graph_calls_failed(struct judge *j, int number) {
    const struct stream *stream = order_stream(j->order, number);
    const struct graph *graph = stream && stream->capture ? stream->capture->graph : NULL;
    struct step *step = graph && graph->nsteps ? &graph->steps[graph->nsteps - 1] : NULL;
    for (; step && step->ncalls > 0; step->ncalls--, step->nranges = 0) {
        calls_not_captured(j, step->calls[step->ncalls - 1].call.comm);
        step->kind = STEP_OP; // nothing, in its place
    }
}

int judge_graph_instantiated(struct judge *j, int number, struct judge_at at) {
    struct graph *graph = numbers_get(&j->graphs->graphs, number);
    if (!graph)
        return -1;
    struct executable *executable = must_alloc(sizeof *executable);
    executable->graph = graph;
    graph->holders++;
    executable->made = at;
    executable->slots = must_alloc((size_t)graph->nbranches * sizeof *executable->slots);
    for (int b = 0; b < graph->nbranches; b++)
        executable->slots[b] = order_slot(j, -1);
    return numbers_add(&j->graphs->executables, executable);
}

/* Whether what a step uses is still there. */
static bool still_there(struct judge *j, const struct step *step,
                        struct judge_at launch) {
    for (int i = 0; i < step->ncalls; i++) {
        struct judge_call call = step->calls[i].call;
        const struct comm_facts *comm = calls_comm(j, call.comm);
        call.at = launch;
        // As it was destroyed, the graph was named.
        if (comm && (comm->gone || !judge_usable(j, &call)))
            return false;
    }
    for (int i = 0; i < step->nranges; i++) {
        if (!step->serials[i] ||
            step->serials[i] == uses_serial(j, step->ranges[i].start))
            continue;
        struct use *use = use_new(step->at);
        use->is_call = step->ncalls == 1;
        if (use->is_call)
            use->call = step->calls[0].call;
        uses_graph_gone(j, step->ranges[i].start, use, launch);
        use_drop(use);
        return false;
    }
    return true;
}

static void launch_calls(struct judge *j, const struct step *step, const int *slots) {
    struct issued_call *calls = must_alloc((size_t)step->ncalls * sizeof *calls);
    for (int i = 0; i < step->ncalls; i++) {
        calls[i] = step->calls[i];
        calls[i].slot = slots[step->calls[i].slot];
        calls_launched(j, calls[i].call.comm);
    }
    issue_calls(j, calls, step->ncalls, step->grouped, NULL);
    free(calls);
}

void judge_graph_launched(struct judge *j, int number, int on, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, on);
    struct executable *executable = numbers_get(&j->graphs->executables, number);
    if (!stream || stream->capture || !executable)
        return;
    background_uses(j, USES_STREAM, on, at);
    order_ready(j, stream);
    const struct graph *graph = executable->graph;
    struct clock *snapshots = must_alloc((size_t)graph->nsnapshots * sizeof *snapshots);
    const int *slots = executable->slots;
    order_next(j->order, stream->slot);
    windows_news(j, stream->slot); // it may make calls
    for (int b = 0; b < graph->nbranches; b++) {
        struct clock *clock = order_clock(j->order, slots[b]);
        j->order->slots[slots[b]].device = stream->device;
        clock_join(clock, order_clock(j->order, stream->slot));
        clock_join(clock, &executable->end);
    }
    for (size_t i = 0; i < graph->nsteps; i++) {
        const struct step *step = &graph->steps[i];
        int slot = slots[step->branch];
        if (!still_there(j, step, at))
            continue;
        switch (step->kind) {
        case STEP_OP: {
            struct use *use = use_new(step->at);
            use->makes = step->makes;
            use->awaits = step->awaits;
            issue_op(j, slot, step->ranges, step->nranges, use, NULL);
            break;
        }
        case STEP_FUNCTION: function_queued(j, step->number, slot); break;
        case STEP_CALLS: launch_calls(j, step, slots); break;
        case STEP_RECORD:
            order_next(j->order, slot);
            clock_copy(&snapshots[step->number], order_clock(j->order, slot));
            break;
        case STEP_WAIT:
            clock_join(order_clock(j->order, slot), &snapshots[step->number]);
            order_next(j->order, slot);
            break;
        case STEP_WAIT_EXTERNAL: // what the event holds now
            if (order_event(j->order, step->number))
                clock_join(order_clock(j->order, slot),
                           &order_event(j->order, step->number)->clock);
            order_next(j->order, slot);
            break;
        }
    }
    struct clock *clock = order_clock(j->order, stream->slot);
    for (int b = 0; b < graph->nbranches; b++)
        clock_join(clock, order_clock(j->order, slots[b]));
    order_next(j->order, stream->slot);
    clock_copy(&executable->end, clock);
    for (int s = 0; s < graph->nsnapshots; s++)
        clock_free(&snapshots[s]);
    free(snapshots);
}

void judge_graph_gone(struct judge *j, int number) {
    numbers_drop(&j->graphs->graphs, number, graph_drop);
}

void judge_executable_gone(struct judge *j, int number) {
    struct executable *executable = numbers_get(&j->graphs->executables, number);
    if (!executable)
        return;
    // What was launched still happens.
    for (int b = 0; b < executable->graph->nbranches; b++)
        order_slot_gone(j->order, executable->slots[b]);
    numbers_drop(&j->graphs->executables, number, executable_free);
}

void graphs_left(struct judge *j, struct text *text) {
    struct left captured = {0}, executables = {0};
    for (size_t i = 0; i < j->graphs->graphs.n; i++) {
        const struct graph *graph = j->graphs->graphs.at[i];
        if (graph)
            count_left(&captured, graph->made);
    }
    for (size_t i = 0; i < j->graphs->executables.n; i++) {
        const struct executable *executable = j->graphs->executables.at[i];
        if (executable)
            count_left(&executables, executable->made);
    }
    add_left(j, text, "graph", captured);
    add_left(j, text, "executable graph", executables);
}

static const struct judge_call *call_of(const struct graph *graph, int comm) {
    for (size_t i = 0; graph && i < graph->nsteps; i++)
        for (int k = 0; k < graph->steps[i].ncalls; k++)
            if (graph->steps[i].calls[k].call.comm == comm)
                return &graph->steps[i].calls[k].call;
    return NULL;
}

/* True: it holds a call on the communicator, which is reported. */
static bool is_held(struct judge *j, const struct comm_facts *comm, int number,
                    const struct graph *graph, const char *what, struct judge_at made,
                    struct judge_at at) {
    const struct judge_call *call = call_of(graph, number);
    if (!call)
        return false;
    struct finding f = finding(FINDING_deadlock_graph, at.site, made.site);
    set_here(j, &f, at);
    set(&f, "comm", "%s", comm_words(j, comm->id, comm->number));
    set_words_at(j, &f, "captured", call_words(call), call->at.site);
    set(&f, "graph", "%s", what);
    set_at(j, &f, "made", made);
    say(j, &f);
    return true;
}

void graph_comm_ends(struct judge *j, int number, enum judge_end how,
                     struct judge_at at) {
    const struct comm_facts *comm = calls_comm(j, number);
    // One that does not block is destroyed meanwhile, and can wait.
    if (!comm || !comm->blocks || how == JUDGE_FINALIZED || how == JUDGE_REVOKED)
        return;
    for (size_t i = 0; i < j->graphs->executables.n; i++) {
        const struct executable *one = j->graphs->executables.at[i];
        if (one &&
            is_held(j, comm, number, one->graph, "the executable graph", one->made, at))
            return;
    }
    for (size_t i = 0; i < j->graphs->graphs.n; i++) {
        const struct graph *one = j->graphs->graphs.at[i];
        if (one && is_held(j, comm, number, one, "the graph", one->made, at))
            return;
    }
}
