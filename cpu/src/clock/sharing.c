/*
 * sharing.c has when operations end that use the same thing of a modelled GPU at the same
 * time. Whether a later one will come is not known when an earlier one ends. So what was
 * called first goes first, and a later one gets what is left: together they take as long
 * as they would if they shared fairly, and the last one ends then. Likewise a product
 * does without the multiprocessors that NCCL has, if NCCL was called before it.
 */
#include "clock/machine.h"

#include "base/base.h"

#include <math.h>

/* How much of something is used, as a part of all: from `at` to the next span's. */
struct span {
    double at, used;
};

struct turn { // the newest operation of a stream that used it
    int stream;
    double start, end;
};

struct calendar { // of one GPU's link, say
    struct calendar *next;
    int device, uses;
    struct span *spans; // the last one is free, and has no end
    int n, room;
    struct turn *turns;
    int nturns;
};
static struct calendar *calendars;

static struct flow *flows; // in the order of the calls
static struct flow **last_flow = &flows;
static const double never = 1e300, patience = 1; // patience: really; see clock_flow

static struct calendar *calendar_of(int device, int uses) {
    struct calendar **at = &calendars;
    while (*at && ((*at)->device != device || (*at)->uses != uses))
        at = &(*at)->next;
    if (!*at) {
        *at = base_alloc(sizeof **at);
        (*at)->device = device;
        (*at)->uses = uses;
        (*at)->room = 64;
        (*at)->spans = base_alloc(64 * sizeof(struct span));
        (*at)->n = 1;
    }
    return *at;
}

/* What ended before `time`. */
static void forget_past(struct calendar *calendar, double time) {
    int old = 0;
    while (old + 1 < calendar->n && calendar->spans[old + 1].at <= time)
        old++;
    if (old < 32)
        return;
    calendar->n -= old;
    memmove(calendar->spans, calendar->spans + old,
            (size_t)calendar->n * sizeof(struct span));
}

struct flow *clock_queue(int device, int stream, const struct cost *cost) {
    // Nothing that comes now, or whose end is not known yet, starts before this.
    double least = clock_host();
    for (const struct flow *flow = flows; flow; flow = flow->next)
        if (!flow->known) {
            least = flow->queued;
            break;
        }
    for (struct calendar *calendar = calendars; calendar; calendar = calendar->next)
        forget_past(calendar, least);
    for (struct flow **at = &flows; *at;) {
        struct flow *flow = *at;
        if (!flow->known || flow->end > least) {
            at = &flow->next;
            continue;
        }
        *at = flow->next;
        if (last_flow == &flow->next)
            last_flow = at;
        free(flow);
    }
    if (!cost->uses)
        return NULL;
    struct flow *flow = base_alloc(sizeof *flow);
    flow->device = device;
    flow->stream = stream;
    flow->queued = clock_host();
    flow->cost = *cost;
    *last_flow = flow;
    last_flow = &flow->next;
    return flow;
}

/* The span that begins at t; makes it, of one that goes on there. */
static int span_at(struct calendar *calendar, double t) {
    int low = 0, high = calendar->n;
    while (low + 1 < high) {
        int middle = (low + high) / 2;
        if (calendar->spans[middle].at <= t)
            low = middle;
        else
            high = middle;
    }
    if (calendar->spans[low].at >= t)
        return low;
    if (calendar->n == calendar->room) {
        calendar->room *= 2;
        calendar->spans =
            base_grow(calendar->spans, (size_t)calendar->room * sizeof(struct span));
    }
    memmove(calendar->spans + low + 2, calendar->spans + low + 1,
            (size_t)(calendar->n - low - 1) * sizeof(struct span));
    calendar->n++;
    calendar->spans[low + 1] = (struct span){t, calendar->spans[low].used};
    return low + 1;
}

/* The multiprocessors that are left to a product at t, beside what NCCL was called to do
 * before it; and until when at least. */
static double units_left(const struct flow *flow, double t, double *until) {
    double left = clock_value[UNITS];
    *until = never;
    for (const struct flow *other = flows; other != flow; other = other->next) {
        if (other->device != flow->device || other->cost.units <= 0 ||
            other->end <= flow->queued)
            continue;
        double end = other->known ? other->end : never;
        if (other->from <= t && t < end)
            left -= other->cost.units;
        double edge = other->from > t ? other->from : end;
        *until = edge > t && edge < *until ? edge : *until;
    }
    return left > 1 ? left : 1;
}

/* When the last block of a product that starts at t is done. A multiprocessor has two
 * blocks at a time, and none is interrupted. All take equally long: so long that it takes
 * `work` if it has the GPU for itself. */
static double last_block(const struct flow *flow, double t) {
    enum { MOST = 32 }; // that started at different times and still run
    double left = flow->cost.blocks, running = 0;
    double each = flow->cost.work / ceil(left / (2 * clock_value[UNITS]));
    struct {
        double end, n;
    } started[MOST];
    for (unsigned first = 0, next = 0;;) {
        double until, n = fmin(2 * units_left(flow, t, &until) - running, left);
        if (n > 0 && next - first < MOST) {
            started[next % MOST].end = t + each;
            started[next++ % MOST].n = n;
            running += n;
            left -= n;
        }
        if (left <= 0)
            return t + each;
        t = until;
        if (first < next && started[first % MOST].end <= until) {
            t = started[first % MOST].end;
            running -= started[first++ % MOST].n;
        }
    }
}

/* What was called first would get all that it can use, and those of other streams that go
 * on at the same time the rest. Really they share. So each leaves an equal share of what
 * is free to those that are not called yet, but will be: the streams whose newest
 * operation ran beside its stream's newest one. */
static double share_of(struct calendar *calendar, const struct flow *flow,
                       struct turn **mine) {
    int sharers = 1;
    *mine = NULL;
    for (int t = 0; t < calendar->nturns; t++)
        if (calendar->turns[t].stream == flow->stream)
            *mine = &calendar->turns[t];
    if (!*mine) {
        calendar->turns = base_grow(calendar->turns,
                                    (size_t)(calendar->nturns + 1) * sizeof(struct turn));
        *mine = &calendar->turns[calendar->nturns++];
        **mine = (struct turn){flow->stream, -1, -1};
    }
    double from = (*mine)->start, to = (*mine)->end;
    for (int t = 0; t < calendar->nturns; t++) {
        const struct turn *other = &calendar->turns[t];
        double beside = fmin(to, other->end) - fmax(from, other->start);
        sharers += beside > (to - from) / 2 && other != *mine;
    }
    return 1.0 / sharers;
}

/* Enters the flow: it gets what those before it leave free. Returns its end. */
static double enter(struct calendar *calendar, const struct flow *flow) {
    double part = flow->cost.part > 1e-6 ? flow->cost.part : 1e-6, share = 1;
    double left = flow->cost.work, t = flow->start, end = never;
    struct turn *turn = NULL;
    if (flow->cost.uses & USES_LINK)
        share = share_of(calendar, flow, &turn);
    for (int i = span_at(calendar, t);; i++) {
        double used = calendar->spans[i].used, rate = fmin((1 - used) * share, part);
        double next = i + 1 < calendar->n ? calendar->spans[i + 1].at : never;
        rate = rate > 1e-9 ? rate : 0;
        if (flow->cost.blocks == 0)
            end = rate > 0 ? t + left / (rate / part) : never;
        else if (rate > 0 && end == never)
            end = last_block(flow, t);
        double until = fmin(end, next);
        if (until < next)
            span_at(calendar, until);
        calendar->spans[i].used = used + rate;
        if (end <= next) {
            if (turn)
                turn->start = flow->start, turn->end = end;
            return end;
        }
        left -= (until - t) * rate / part;
        t = until;
    }
}

/* Whether `earlier` can make `flow` slower. */
static bool concerns(const struct flow *earlier, const struct flow *flow) {
    bool slows = flow->cost.blocks > 0 && earlier->cost.units > 0;
    return earlier->device == flow->device &&
           (slows || (earlier->cost.uses & flow->cost.uses) != 0);
}

bool clock_flow(struct flow *flow, double from, double start, const struct cost *cost,
                double *end) {
    bool wait = false;
    flow->cost = *cost;
    flow->from = from;
    flow->start = start + cost->latency;
    for (struct flow *earlier = flows; earlier != flow && !wait; earlier = earlier->next)
        wait = !earlier->known && concerns(earlier, flow);
    // The earlier ones may wait for ranks that come only after this one. Then they do not
    // move anything yet. Nobody knows; patience tells.
    if (wait && flow->asked == 0)
        flow->asked = now();
    if (wait && now() - flow->asked < patience)
        return false;
    struct calendar *calendar = calendar_of(flow->device, cost->uses);
    flow->end = flow->start;
    if (cost->work > 0)
        flow->end = enter(calendar, flow);
    *end = flow->end;
    flow->known = true;
    return true;
}
