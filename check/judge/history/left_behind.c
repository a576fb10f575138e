/*
 * left_behind.c: what a program has made and not released.
 */
#include "history/memory.h"
#include "history/graphs.h"
#include "ranks/calls.h"
#include "say/report.h"

void judge_left_behind(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    struct left streams = {0}, events = {0}, comms = {0};
    const struct comm_facts *comm;
    uint64_t kept = 0;
    uses_left(j, &text);
    for (int s = 0; s < (int)j->order->streams.n; s++)
        if (order_stream(j->order, s))
            count_left(&streams, order_stream(j->order, s)->made);
    for (int e = 0; e < (int)j->order->events.n; e++)
        if (order_event(j->order, e))
            count_left(&events, order_event(j->order, e)->made);
    for (int c = 0; (comm = calls_comm(j, c)); c++)
        if (!comm->gone) {
            count_left(&comms, comm->made);
            if (!kept && j->outside.aborted)
                kept = j->outside.aborted(j->outside.self, comm->id, 0);
        }
    add_left(j, &text, "stream", streams);
    add_left(j, &text, "event", events);
    graphs_left(j, &text);
    add_left(j, &text, "communicator", comms);
    if (kept)
        text_add(&text, ", which others aborted at %s, so this rank has to, too",
                 place(j, kept));
    text_out(&text, out, bytes);
}
