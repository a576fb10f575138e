/*
 * streams.h: who has a clock: streams, branches of graphs, events.
 */
#ifndef STREAMS_H
#define STREAMS_H

#include "base/self.h"

struct stream {
    int slot, device;
    enum judge_stream_kind kind;
    struct judge_at made;    // call NULL: by nobody, a default stream
    struct capture *capture; // graphs.c's: what is queued on it belongs to a graph
    int branch;              // of that graph
};

struct event {
    struct judge_at made;
    struct clock clock;
    struct record last;
    struct event *next; // spare
    uint64_t graph;     // graphs.c's: recorded in a capture; 0: in none
    int snapshot;
};

/* The last wait of a slot for an event, and how that was recorded then; at.call NULL:
 * none. */
struct waited {
    struct judge_at at;
    struct record last;
};

struct slot {
    struct clock clock;
    uint64_t count; // operations so far; goes on when the slot is used again
    uint64_t news;  // the newest that may have waited for other ranks, or signalled them
    // windows.c's: of the signals that it counts (0: operations); before the epoch.
    uint64_t id, earlier;
    int device;
    enum judge_stream_kind kind;
    struct waited waited;
};

enum { FEW = 4 };
struct order {
    struct slot *slots;
    int nslots;
    size_t slots_size;
    int *gone; // slots given up
    size_t ngone, gone_size;
    struct numbers streams, events;
    struct event *spare; // events that are gone, with the memory of their clocks
    int nspare;
    struct clock group[FEW]; // issue.c's: of the communicators of a group
    int *legacy;             // per device its default stream, + 1; 0: none yet
    size_t ndevices;
};

void order_free(struct order *order);

/* NULL: there is none, or not any more. */
struct stream *order_stream(struct order *order, int stream);
struct event *order_event(struct order *order, int event);
void order_stream_gone(struct judge *j, int stream);

/* A slot for a branch of a graph. What is given up may be used again once the host knows
 * that all of it has happened. */
int order_slot(struct judge *j, int device);
void order_slot_gone(struct order *order, int slot);
struct clock *order_clock(struct order *order, int slot); // C
/* What comes before anything that is queued now: what the host knows, and the default
 * stream's rules. */
void order_ready(struct judge *j, const struct stream *stream);
/* What the host waits for with the stream: of the default stream, what it would come
 * after. */
void order_awaited(const struct order *order, const struct stream *stream,
                   struct clock *into);
// one operation more, which the clock covers
uint64_t order_next(struct order *order, int slot);

#endif
