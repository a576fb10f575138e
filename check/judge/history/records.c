/*
 * records.c: events that are recorded on streams, or captured into a graph, and streams
 * that wait for them.
 */
#include "history/background.h"
#include "history/graphs.h"
#include "history/issue.h"

void judge_record(struct judge *j, int number, int on, struct judge_at at) {
    struct event *event = order_event(j->order, number);
    struct stream *stream = order_stream(j->order, on);
    latest_begin(j, at);
    if (!event || !stream)
        return;
    background_uses(j, USES_STREAM, on, at);
    event->graph = 0;
    if (stream->capture) {
        graph_record(stream, event);
        return;
    }
    order_ready(j, stream);
    uint64_t seq = order_next(j->order, stream->slot);
    clock_copy(&event->clock, order_clock(j->order, stream->slot));
    event->last = (struct record){at, stream->slot, seq};
}

void judge_stream_waits(struct judge *j, int on, int number, struct judge_at at) {
    struct event *event = order_event(j->order, number);
    struct stream *stream = order_stream(j->order, on);
    latest_begin(j, at);
    if (!event || !stream ||
        ((event->graph || stream->capture) && graph_waits(j, stream, number)))
        return;
    order_ready(j, stream);
    clock_join(order_clock(j->order, stream->slot), &event->clock);
    order_next(j->order, stream->slot);
    j->order->slots[stream->slot].waited = (struct waited){at, event->last};
}
