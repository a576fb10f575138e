/*
 * operations.c: what is queued on streams, or captured into a graph: operations, memory
 * that comes and goes in a stream, functions of the program.
 */
#include "history/allocations.h"
#include "history/background.h"
#include "history/functions.h"
#include "history/graphs.h"
#include "history/groups.h"
#include "history/issue.h"

void judge_memory_made(struct judge *j, const void *start, size_t bytes,
                       enum judge_memory_kind kind, int device, int number,
                       struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct judge_range range = {start, bytes, true, true};
    struct allocation *allocation = uses_made(j, start, bytes, kind, device, at);
    if (stream && stream->capture) {
        allocation->of_graph = true; // which makes and frees it at each launch
        graph_op(j, stream, &range, 1, true, false, at);
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
            struct judge_range range = {start, memory.bytes, true, true};
            graph_op(j, stream, &range, 1, false, false, at);
        }
    } else {
        order_ready(j, stream);
        order_next(j->order, stream->slot);
        uses_freed(j, start, stream->slot, at);
    }
}

static bool is_kernel(enum judge_op_kind kind) {
    return kind == JUDGE_KERNEL || kind == JUDGE_KERNEL_MEETS;
}

static enum awaits awaits(enum judge_op_kind kind) {
    return kind == JUDGE_KERNEL_MEETS ? AWAITS_KERNELS
           : kind == JUDGE_AWAITS     ? AWAITS_SIGNALS
                                      : AWAITS_NOTHING;
}

bool judge_op(struct judge *j, int number, const struct judge_range *ranges, int n,
              enum judge_op_kind kind, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    struct latest *latest = latest_begin(j, at);
    if (!stream)
        return false;
    background_uses(j, USES_STREAM, number, at);
    uint64_t source = uses_source(ranges, n, kind);
    bool wrong = uses_check(j, ranges, n, kind, stream->capture != NULL, at) ||
                 uses_out_of_reach(j, ranges, n, kind, stream->device, at);
    groups_check_op(j, ranges, n, at);
    if (is_kernel(kind) || (kind >= JUDGE_PUTS && n == 0))
        j->uses->kernels = true;
    if (stream->capture) {
        graph_op(j, stream, ranges, n, false, awaits(kind), at);
    } else {
        order_ready(j, stream);
        struct use *use = use_new(at);
        uint64_t nothing = wrong ? 0 : uses_nothing(j, ranges, n, at);
        use->source = nothing ? nothing : source;
        use->moves = kind == JUDGE_COPY || kind == JUDGE_COPY_ROWS || kind == JUDGE_SET;
        use->awaits = awaits(kind);
        issue_op(j, stream->slot, ranges, n, use, latest);
        if (is_kernel(kind) || (j->thread->group && kind < JUDGE_PUTS))
            windows_news(j, stream->slot); // puts of the group come later
        windows_use(j, stream->slot, ranges, n, at);
    }
    return wrong;
}

int judge_host_function(struct judge *j, int number, struct judge_at at) {
    struct stream *stream = order_stream(j->order, number);
    int function = function_new(j, stream && stream->capture);
    background_uses(j, USES_STREAM, number, at);
    if (stream && stream->capture) {
        graph_function(stream, function, at);
    } else if (stream) {
        order_ready(j, stream);
        function_queued(j, function, stream->slot);
        windows_news(j, stream->slot);
    }
    return function;
}
