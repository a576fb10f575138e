/*
 * groups.c: groups of calls of NCCL that a thread has opened, and what the program does
 * meanwhile with the buffers of their calls.
 *
 * NCCL User Guide, "Group Calls".
 */
#include "history/groups.h"

#include "history/memory.h"
#include "history/background.h"
#include "history/graphs.h"
#include "history/issue.h"
#include "ranks/comms.h"
#include "say/report.h"
#include "say/words.h"

struct group { // that a thread has opened
    int depth, starts;
    struct judge_at at, newest; // where it was started, and was so once more
    struct judge_at makes;      // the first communicator that it makes; call NULL: none
    struct judge_call *calls;
    size_t ncalls, size;
};

void groups_free(struct group *group) {
    if (group)
        free(group->calls);
    free(group);
}

/* The first call of an open group that writes some of the range; NULL: none. */
static const struct judge_call *writes_in_group(struct judge *j,
                                                const struct group *group,
                                                const struct judge_range *range) {
    struct judge_range ranges[CALL_RANGES];
    const char *from = range->start, *to = from + range->bytes;
    for (size_t i = 0; group && i < group->ncalls; i++)
        for (int n = uses_of_call(j, &group->calls[i], ranges); n-- > 0;) {
            const char *start = ranges[n].start;
            if (ranges[n].write && start < to && from < start + ranges[n].bytes)
                return &group->calls[i];
        }
    return NULL;
}

/* An operation is queued at once: it comes before what a call of this thread's open group
 * is to write. */
void groups_check_op(struct judge *j, const struct judge_range *ranges, int n,
                     struct judge_at at) {
    const struct group *group = j->thread->group;
    const struct judge_call *call = NULL;
    for (int r = 0; r < n && !call; r++)
        if (!ranges[r].write && ranges[r].bytes)
            call = writes_in_group(j, group, &ranges[r]);
    if (!call)
        return;
    struct finding f = finding(FINDING_race_read_in_group, at.site, call->at.site);
    set_here(j, &f, at);
    set_words_at(j, &f, "words", call_words(call), call->at.site);
    set_place(j, &f, "group", group->at.site);
    say(j, &f);
}

/* Puts calls after what their streams hold, or into the graphs that these are captured
 * into. */
static void issue(struct judge *j, struct judge_call *calls, size_t n, bool grouped,
                  struct latest *latest) {
    int stream_of_first = n ? calls[0].stream : -1;
    int left = graph_calls(j, calls, (int)n);
    if (left < (int)n)
        latest->captured = stream_of_first + 1;
    struct issued_call alone, *issued = &alone;
    judge_call_answered(j, false); // one that was not made
    for (int i = 0; i < left; i++)
        background_called(j, &calls[i]);
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
        issue_calls(j, issued, left, grouped, latest);
    if (left > 1)
        free(issued);
}

/* They come after what the communicator's streams hold so far, and before the calls. */
static void record_launches(struct judge *j, const struct judge_call *calls, size_t n) {
    for (size_t i = 0; i < n; i++) {
        judge_record(j, calls[i].launched - 1, calls[i].stream,
                     (struct judge_at){"launchCompletionEvent", calls[i].at.site});
        struct event *event = order_event(j->order, calls[i].launched - 1);
        for (size_t k = 0; k < n && event; k++) {
            const struct stream *stream = order_stream(j->order, calls[k].stream);
            if (stream && calls[k].comm == calls[i].comm)
                order_awaited(j->order, stream, &event->clock);
        }
    }
}

void judge_group_starts(struct judge *j, struct judge_at at) {
    struct group *group = j->thread->group;
    if (!group) {
        group = j->thread->group = must_alloc(sizeof *group);
        group->at = at;
    }
    group->depth++;
    group->starts++;
    group->newest = at;
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
    struct finding f =
        finding(FINDING_setup_merged_group, group->makes.site, call->at.site);
    set_at(j, &f, "here", group->makes);
    set_words_at(j, &f, "words", call_words(call), call->at.site);
    say(j, &f);
}

void judge_group_ends(struct judge *j, struct judge_at at) {
    struct group *group = j->thread->group;
    if (!group || --group->depth > 0)
        return;
    record_launches(j, group->calls, group->ncalls);
    struct latest *latest = latest_begin(j, at);
    check_merged(j, group);
    if (group->ncalls)
        issue(j, group->calls, group->ncalls, true, latest);
    groups_free(group);
    j->thread->group = NULL;
    j->thread->signals = 0;
}

static bool add(struct judge *j, const struct judge_call *call) {
    struct group *group = j->thread->group;
    if (!group)
        return false;
    ROOM(group->calls, group->ncalls, &group->size);
    group->calls[group->ncalls++] = *call;
    return true;
}

bool judge_call(struct judge *j, const struct judge_call *call) {
    bool wrong = uses_check_call(j, call, order_stream(j->order, call->stream));
    background_uses(j, USES_COMM, call->comm, call->at);
    judge_usable(j, call);
    if (add(j, call)) {
        latest_begin(j, call->at)->in_group = true;
    } else {
        struct judge_call alone = *call;
        record_launches(j, call, 1);
        issue(j, &alone, 1, false, latest_begin(j, call->at));
    }
    return wrong;
}

void judge_joins(struct judge *j, const struct judge_join *join) {
    latest_begin(j, join->at)->join = true;
    if (j->thread->group && !j->thread->group->makes.call)
        j->thread->group->makes = join->at;
    calls_joins(j, join);
}

void groups_call_failed(struct judge *j, struct judge_at at) {
    struct latest *latest = j->thread->latest;
    if (!latest->at.call || !at.call || latest->at.site != at.site ||
        strcmp(latest->at.call, at.call) != 0)
        return;
    struct group *group = j->thread->group;
    if (latest->in_group && group && group->ncalls)
        fresh_not_sent(j, &group->calls[--group->ncalls]);
    if (latest->captured)
        graph_calls_failed(j, latest->captured - 1);
    latest_undo(j, latest);
}

void judge_not_told(struct judge *j) {
    latest_clear(j->thread->latest);
}

void groups_check_open(struct judge *j, int stream, struct judge_at at) {
    const struct group *group = j->thread->group;
    const struct judge_call *first = NULL;
    size_t n = 0;
    for (size_t i = 0; group && i < group->ncalls; i++)
        if (stream < 0 || group->calls[i].stream == stream) {
            first = first ? first : &group->calls[i];
            n++;
        }
    if (!group || (stream >= 0 && n == 0))
        return;
    struct finding f = finding(FINDING_setup_group_open, group->at.site, at.site);
    set_place(j, &f, "group", group->at.site);
    if (at.site)
        set(&f, "where", "in %s at %s", at.call, place(j, at.site));
    else
        set(&f, "where", "at %s", at.call);
    if (group->starts > 1) {
        set(&f, "starts", "%d", group->starts - 1);
        set_place(j, &f, "newest", group->newest.site);
        set(&f, "ends", "%d", group->starts - group->depth);
    }
    if (first) {
        set(&f, "calls", "%zu call%s", n, n == 1 ? " waits" : "s wait");
        set_words_at(j, &f, "words", call_words(first), first->at.site);
    }
    say(j, &f);
}
