/*
 * wait_calls.c: the program waits for a stream, an event or a device, or asks how one of
 * them or a communicator is.
 */
#include "history/background.h"
#include "ranks/comms.h"
#include "ranks/round_trips.h"
#include "history/groups.h"
#include "history/host_knows.h"
#include "history/streams.h"
#include "stuck/waits.h"

void judge_wait_stream(struct judge *j, int number, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (stream) {
        groups_check_open(j, number, at);
        background_uses(j, USES_STREAM, number, at);
        order_awaited(j->order, stream, &clock);
    }
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

void judge_wait_device(struct judge *j, int device, struct judge_at at) {
    struct clock clock = {0};
    groups_check_open(j, -1, at);
    background_uses(j, USES_DEVICE, device, at);
    for (int s = 0; s < j->order->nslots; s++)
        if (device < 0 || j->order->slots[s].device == device)
            clock_join(&clock, &j->order->slots[s].clock);
    waits_begin_order(j, &clock, false, at);
    clock_free(&clock);
}

bool judge_wait_abort(struct judge *j, int comm, struct judge_at at) {
    struct clock clock = {0};
    pending_others(&j->calls->pending, comm, &clock);
    bool any = clock.n > 0;
    if (any)
        waits_begin_abort(j, &clock, at);
    clock_free(&clock);
    return any;
}

void judge_wait_end(struct judge *j, bool happened) {
    struct clock clock = {0};
    bool launches = waits_for_launch(j);
    waits_end(j, &clock);
    if (happened && clock.n)
        host_learns(j, &clock);
    else if (!launches)
        round_trip_heard(j);
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
    host_learns(j, clock);
}

void judge_poll_stream(struct judge *j, int number, bool done, struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    struct clock clock = {0};
    if (!stream)
        return;
    groups_check_open(j, number, at);
    if (done)
        background_ready(j, number, -1);
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
    round_trip_heard(j);
    if (!done) {
        waits_begin_poll_comm(j, comm, at);
        return;
    }
    background_ready(j, -1, comm);
    waits_answered(j, at);
    waits_asks(j);
}
