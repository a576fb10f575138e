/* queue.h: streams, and operations in them. */
#ifndef CPU_QUEUE_H
#define CPU_QUEUE_H

#include "base/base.h"
#include "clock/clock.h"

struct mark { // a place in a stream
    int slot;
    uint64_t seq;
};

/* Something to be done, in a stream. What it is, is known to those who make it: each kind
 * is a struct of its own that begins with this one. */
struct op {
    /* Brings it further; true if it got anywhere. Sets `done` when it is over. */
    bool (*step)(struct op *op);
    /* Frees what it holds, and not itself; may be NULL. */
    void (*drop)(struct op *op);
    /* Another one like it, for a launch of the graph that holds it. */
    struct op *(*copy)(const struct op *op);
    /* It is about to be queued in earnest, not captured; may be NULL. */
    void (*queued)(struct op *op);
    bool done;
    struct stream *stream;
    uint64_t seq; // on its stream, from 1
    struct op *next;
    struct mark *after; // what it comes after, on other streams
    int nafter;
    // With a modelled clock
    struct cost cost;
    struct flow *flow;
    double from;  // what is known of what it comes after
    double start; // of it on its stream; of all its ranks
    double early; // before the end of the one before it on its stream
    bool placed;  // `start` is known
};

struct op *op_create(size_t bytes, bool (*step)(struct op *op));
struct op *op_nothing(void); // a place in a stream
void op_after(struct op *op, struct mark mark);
void op_free(struct op *op);

/* Takes operations down instead of having them done; see capture.c. */
struct capture {
    void (*take)(struct capture *capture, struct stream *stream, struct op *op);
};

struct stream {
    int slot;
    int device, priority;
    bool blocking, legacy, destroyed;
    bool internal;           // of a communicator or a graph: cudaDeviceReset leaves it
    unsigned thread;         // whose cudaStreamPerThread it is; 0: nobody's
    struct op *first, *last; // not done yet
    uint64_t queued;         // sequence number of the newest
    struct capture *capture;
    double time;  // modelled: its newest operation that is over ended then
    double floor; // no later one starts before
};

extern int nstreams;            // slots
extern struct stream **streams; // per slot; NULL: empty

struct stream *stream_create(int device, bool blocking);
/* What is queued on it will be done all the same. */
void stream_retire(struct stream *stream);
struct stream *stream_of(cudaStream_t handle, int device); // NULL: no such stream
struct stream *legacy_stream(int device);

/* Queues `op` after all that is on the stream, and after what the default stream's
 * rules demand; or has it captured. */
void op_enqueue(struct op *op, struct stream *stream);
struct mark stream_end(const struct stream *stream); // after its newest operation
bool passed(struct mark mark);
double time_of(struct mark mark); // modelled, of one that is passed
/* By the modelled clock, streams that are no more ended then. */
double streams_gone(int device);
/* Nothing on this device is done any more; what is queued ends at once. */
void device_break(int device, cudaError_t error);
void device_mend(int device);
cudaError_t device_broken(int device); // cudaSuccess: it is not

/* What queue_look does beside advancing streams: true if that was anything. */
void queue_also(bool (*look)(void));
/* Does what can be done now; true if that was anything. */
bool queue_look(void);
/* Looks until there(argument). */
void wait_until(bool (*there)(const void *argument), const void *argument);
void wait_for(struct mark mark);
/* One look, for a query, which may be asked again and again. */
bool poll_until(bool (*there)(const void *argument), const void *argument);
bool poll_for(struct mark mark);
/* For what is in the stream now; the default stream waits for the blocking ones, too. */
void wait_for_stream(const struct stream *stream);
bool poll_for_stream(const struct stream *stream);

#endif
