/*
 * queue.c has the streams: operations in order, and what advances them.
 *
 * A call that queues work returns at once; the work happens when the program waits or
 * asks for something: every wait advances all streams, not only the one waited for.
 * CUDA Programming Guide, "Streams"; CUDA Runtime API, "Stream synchronization behavior".
 */
#define _GNU_SOURCE
#include "cuda/queue.h"
#include "standin.h"

#include "base/helper.h"

#include <pthread.h>
#include <sched.h>

int nstreams;
struct stream **streams;
static uint64_t *done; // per slot: the newest operation that is over
static struct stream **legacy;
static int nlegacy;
static struct past { // modelled: when a slot's operations were over
    double *ends;
    uint64_t first; // sequence number of ends[0]
    size_t n, room;
} * past;            // per slot
static double *gone; // per device
static int ngone;
static __thread int paid; // what this thread queues costs the host nothing more

/* --- Streams ---------------------------------------------------------------------- */

static int new_slot(void) {
    for (int s = 0; s < nstreams; s++)
        if (!streams[s])
            return s;
    streams = base_grow(streams, (size_t)(nstreams + 1) * sizeof *streams);
    done = base_grow(done, (size_t)(nstreams + 1) * sizeof *done);
    done[nstreams] = 0;
    past = base_grow(past, (size_t)(nstreams + 1) * sizeof *past);
    past[nstreams] = (struct past){0};
    return nstreams++;
}

struct stream *stream_create(int device, bool blocking) {
    struct stream *stream = base_alloc(sizeof *stream);
    stream->slot = new_slot();
    stream->device = device;
    stream->blocking = blocking;
    // A slot that was used before goes on counting: older marks stay passed.
    stream->queued = done[stream->slot];
    streams[stream->slot] = stream;
    return stream;
}

static int advancing = -1; // the slot that is, if any

/* What waits for all streams would have waited for this one. */
static void note_gone(const struct stream *stream) {
    while (ngone <= stream->device) {
        gone = base_grow(gone, (size_t)(ngone + 1) * sizeof *gone);
        gone[ngone++] = 0;
    }
    if (gone[stream->device] < stream->time)
        gone[stream->device] = stream->time;
    struct stream *waits = stream->blocking ? legacy_stream(stream->device) : NULL;
    if (waits && waits->floor < stream->time)
        waits->floor = stream->time;
}

static void reap(struct stream *stream) {
    if (!stream->destroyed || stream->first || stream->capture ||
        stream->slot == advancing)
        return;
    if (clock_on)
        note_gone(stream);
    streams[stream->slot] = NULL;
    free(stream);
}

void stream_retire(struct stream *stream) {
    stream->destroyed = true;
    reap(stream);
}

struct stream *legacy_stream(int device) {
    if (device >= nlegacy) {
        legacy = base_grow(legacy, (size_t)(device + 1) * sizeof *legacy);
        while (nlegacy <= device)
            legacy[nlegacy++] = NULL;
    }
    if (!legacy[device]) {
        legacy[device] = stream_create(device, true);
        legacy[device]->legacy = true;
    }
    return legacy[device];
}

/* Threads are numbered, from 1; what a thread had for itself goes with it. */
static pthread_key_t thread_end;

static void retire_threads_streams(void *number) {
    LOCKED;
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && !streams[s]->destroyed &&
            streams[s]->thread == (unsigned)(uintptr_t)number)
            stream_retire(streams[s]);
}

static unsigned this_thread(void) {
    static unsigned threads;
    static __thread unsigned number;
    if (number == 0) {
        if (threads == 0)
            pthread_key_create(&thread_end, retire_threads_streams);
        number = ++threads;
        pthread_setspecific(thread_end, (void *)(uintptr_t)number);
    }
    return number;
}

static struct stream *per_thread_stream(int device) {
    unsigned thread = this_thread();
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->thread == thread && streams[s]->device == device &&
            !streams[s]->destroyed)
            return streams[s];
    struct stream *stream = stream_create(device, true);
    stream->thread = thread;
    return stream;
}

struct stream *stream_of(cudaStream_t handle, int device) {
    if (!handle || handle == cudaStreamLegacy)
        return legacy_stream(device);
    if (handle == cudaStreamPerThread)
        return per_thread_stream(device);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] == (struct stream *)handle && !streams[s]->destroyed &&
            !streams[s]->legacy)
            return streams[s];
    return NULL;
}

struct mark stream_end(const struct stream *stream) {
    return (struct mark){stream->slot, stream->queued};
}

bool passed(struct mark mark) {
    return done[mark.slot] >= mark.seq;
}

double streams_gone(int device) {
    return device < ngone ? gone[device] : 0;
}

double time_of(struct mark mark) {
    const struct past *p = &past[mark.slot];
    return mark.seq < p->first || p->n == 0 ? 0 : p->ends[mark.seq - p->first];
}

/* What ended before the host's own time is forgotten: nothing depends on it any more. */
static void note_end(struct op *op, double end) {
    struct past *p = &past[op->stream->slot];
    op->stream->time = end;
    if (p->n == p->room) {
        size_t old = 0;
        while (old < p->n && p->ends[old] <= clock_host())
            old++;
        p->n -= old;
        p->first += old;
        if (p->n > 0)
            memmove(p->ends, p->ends + old, p->n * sizeof *p->ends);
        if (p->n >= p->room / 2) {
            p->room = p->room ? 2 * p->room : 64;
            p->ends = base_grow(p->ends, p->room * sizeof *p->ends);
        }
    }
    if (p->n == 0)
        p->first = op->seq;
    p->ends[p->n++] = end;
}

/* --- Operations ------------------------------------------------------------------- */

struct op *op_create(size_t bytes, bool (*step)(struct op *op)) {
    struct op *op = base_alloc(bytes);
    op->step = step;
    return op;
}

static bool do_nothing(struct op *op) {
    return op->done = true;
}

static struct op *another_nothing(const struct op *op) {
    (void)op;
    return op_nothing();
}

struct op *op_nothing(void) {
    struct op *op = op_create(sizeof *op, do_nothing);
    op->copy = another_nothing;
    return op;
}

void op_after(struct op *op, struct mark mark) {
    if (passed(mark)) {
        double end = clock_on ? time_of(mark) : 0;
        op->from = end > op->from ? end : op->from;
        return;
    }
    for (int i = 0; i < op->nafter; i++)
        if (op->after[i].slot == mark.slot) {
            if (op->after[i].seq < mark.seq)
                op->after[i].seq = mark.seq;
            return;
        }
    op->after = base_grow(op->after, (size_t)(op->nafter + 1) * sizeof *op->after);
    op->after[op->nafter++] = mark;
}

void op_free(struct op *op) {
    if (op->drop)
        op->drop(op);
    free(op->after);
    free(op);
}

static void come_after(struct op *op, const struct stream *stream,
                       const struct stream *before) {
    if (before != stream)
        op_after(op, stream_end(before));
}

void op_enqueue(struct op *op, struct stream *stream) {
    if (stream->capture) {
        stream->capture->take(stream->capture, stream, op);
        return;
    }
    // The default stream waits for the blocking streams of its device, and they for it.
    if (stream->legacy) {
        for (int s = 0; s < nstreams; s++)
            if (streams[s] && streams[s]->device == stream->device &&
                streams[s]->blocking)
                come_after(op, stream, streams[s]);
    } else if (stream->blocking) {
        come_after(op, stream, legacy_stream(stream->device));
    }
    op->stream = stream;
    if (clock_on) {
        if (!paid)
            clock_host_spends(op->cost.host);
        if (op->from < clock_host())
            op->from = clock_host();
        if (op->from < stream->floor)
            op->from = stream->floor;
        op->flow = clock_queue(stream->device, stream->slot, &op->cost);
    }
    if (op->queued)
        op->queued(op);
    op->seq = ++stream->queued;
    if (stream->last)
        stream->last->next = op;
    else
        stream->first = op;
    stream->last = op;
    helper_work(1, queue_look);
}

/* --- Broken devices --------------------------------------------------------------- */

static cudaError_t *broken;
static int nbroken;

void device_break(int device, cudaError_t error) {
    while (nbroken <= device) {
        broken = base_grow(broken, (size_t)(nbroken + 1) * sizeof *broken);
        broken[nbroken++] = cudaSuccess;
    }
    if (broken[device] == cudaSuccess)
        broken[device] = error;
}

void device_mend(int device) {
    if (device < nbroken)
        broken[device] = cudaSuccess;
}

cudaError_t device_broken(int device) {
    return device < nbroken ? broken[device] : cudaSuccess;
}

/* --- Doing it --------------------------------------------------------------------- */

static bool may_start(const struct op *op) {
    for (int i = 0; i < op->nafter; i++)
        if (!passed(op->after[i]))
            return false;
    return true;
}

void standin_unpaid(int begins) {
    paid += begins ? 1 : -1;
}

const char *standin_clock(double *time) {
    if (!clock_on)
        return NULL;
    LOCKED;
    *time = clock_host();
    return clock_machine();
}

/* When it starts, by the modelled clock: all that it comes after is over. */
static void place(struct op *op) {
    double at = op->stream->time - op->early;
    at = op->from > at ? op->from : at;
    for (int i = 0; i < op->nafter; i++) {
        double end = time_of(op->after[i]);
        at = end > at ? end : at;
    }
    op->from = op->start = at;
    op->placed = true;
}

/* Whether it is known when it ends. */
static bool ends(struct op *op) {
    double end = op->start + op->cost.latency + op->cost.work;
    if (op->flow && !clock_flow(op->flow, op->from, op->start, &op->cost, &end))
        return false;
    note_end(op, end + op->cost.tail);
    return true;
}

static bool advance(void) {
    bool any = false;
    for (int s = 0; s < nstreams; s++) {
        struct stream *stream = streams[s];
        advancing = s;
        while (stream && stream->first && may_start(stream->first)) {
            struct op *op = stream->first;
            if (clock_on && !op->placed)
                place(op);
            if (device_broken(stream->device) != cudaSuccess)
                op->done = true;
            else if (!op->done)
                any |= op->step(op);
            if (!op->done || (clock_on && !ends(op)))
                break;
            any = true;
            stream->first = op->next;
            if (!stream->first)
                stream->last = NULL;
            done[s] = op->seq;
            op_free(op);
            helper_work(-1, queue_look);
        }
        advancing = -1;
        if (stream)
            reap(stream);
    }
    return any;
}

static bool (*also)(void);

void queue_also(bool (*look)(void)) {
    also = look;
}

bool queue_look(void) {
    bool news = also && also();
    return advance() || news;
}

/* --- Waiting ---------------------------------------------------------------------- */

void wait_until(bool (*there)(const void *argument), const void *argument) {
    unsigned looks = 0;
    advance();
    while (!there(argument)) {
        helper_looked();
        looks = queue_look() ? 0 : looks + 1;
        if (there(argument))
            break;
        base_pause(looks);
    }
}

bool poll_until(bool (*there)(const void *argument), const void *argument) {
    helper_looked();
    advance();
    if (!there(argument))
        queue_look();
    if (there(argument))
        return true;
    base_pause(15); // who asks in a loop must let others on the processor
    return false;
}

/* What is in a stream now; of the default stream, also what it would come after. */
struct marks {
    struct mark *at;
    int n;
};

static struct marks content_of(const struct stream *stream) {
    struct marks marks = {base_alloc((size_t)nstreams * sizeof *marks.at), 0};
    for (int s = 0; s < nstreams; s++)
        if (streams[s] == stream ||
            (stream->legacy && streams[s] && streams[s]->blocking &&
             streams[s]->device == stream->device))
            marks.at[marks.n++] = stream_end(streams[s]);
    return marks;
}

static bool all_passed(const void *argument) {
    const struct marks *marks = argument;
    for (int i = 0; i < marks->n; i++)
        if (!passed(marks->at[i]))
            return false;
    return true;
}

/* By the modelled clock. */
static double end_of(const struct marks *marks) {
    double last = 0;
    for (int i = 0; i < marks->n; i++) {
        double end = time_of(marks->at[i]);
        last = end > last ? end : last;
    }
    return last;
}

/* By the modelled clock they are there when the host's time has come to their end. That
 * can only be known when it has really happened. How often the program asks before that
 * must not matter, and so costs nothing; and it shall not ask often. */
static bool poll_modelled(const struct marks *marks) {
    const double patience = 0.1;
    for (double since = now(); !poll_until(all_passed, marks);)
        if (now() - since > patience)
            return false;
    double end = end_of(marks);
    if (end <= clock_host())
        return true;
    clock_host_polls(end);
    return false;
}

static void wait_marks(const struct marks *marks) {
    wait_until(all_passed, marks);
    if (clock_on && !paid)
        clock_host_until(end_of(marks));
}

static bool poll_marks(const struct marks *marks) {
    return clock_on && !paid ? poll_modelled(marks) : poll_until(all_passed, marks);
}

void wait_for(struct mark mark) {
    wait_marks(&(struct marks){&mark, 1});
}

bool poll_for(struct mark mark) {
    return poll_marks(&(struct marks){&mark, 1});
}

void wait_for_stream(const struct stream *stream) {
    struct marks marks = content_of(stream);
    wait_marks(&marks);
    free(marks.at);
}

bool poll_for_stream(const struct stream *stream) {
    struct marks marks = content_of(stream);
    bool there = poll_marks(&marks);
    free(marks.at);
    return there;
}
