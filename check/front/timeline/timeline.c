/*
 * timeline.c: notes of what happened when, on this rank; and how rank 0 gets those of
 * all.
 *
 * Round an operation an event is recorded in its stream, and one after it. They are read
 * when the host has waited for them anyway, or at the end. Times of a stream are added up
 * from event to event: from a base event to the first, from each to the next. What the
 * base event's time is by the host's clock is measured when the device is first used, and
 * again at the end, since the two clocks do not run equally fast. CUDA Runtime API,
 * "Event Management".
 */
#define _GNU_SOURCE
#include "timeline.h"

#include "places.h"

#include "base/base.h"

#include <stdio.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if !OVER_STANDIN && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define RANGE_BEGINS(name) ((void)nvtxRangePushA(name))
#define RANGE_ENDS() ((void)nvtxRangePop())
#else
#define RANGE_BEGINS(name) ((void)(name))
#define RANGE_ENDS() ((void)0)
#endif

// In the headers of CUDA 12.8 this is the name of a second version, which older libraries
// lack.
#ifdef cudaEventElapsedTime
#undef cudaEventElapsedTime
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
#endif

int timeline_on;

static char file[PATH_MAX]; // "": this rank was given none
/* Nothing is called below while a thread has this lock: it might wait there for another
 * thread, which waits for the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER; // of events, by one at a time

static double real_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double host_time(void) {
    double modelled;
    return OVER_STANDIN && STANDIN(clock)(&modelled) ? modelled : real_time();
}

static const char *clock_name(void) {
    double unused;
    return OVER_STANDIN ? STANDIN(clock)(&unused) : NULL;
}

static void nap(void) {
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* A call below that is none of the program's: on a modelled clock it costs no time. */
#define UNPAID(function, ...)                               \
    ({                                                      \
        if (OVER_STANDIN)                                   \
            STANDIN(unpaid)(1);                             \
        __typeof__((function)(__VA_ARGS__)) unpaid_result = \
            CALL(function, ##__VA_ARGS__);                  \
        if (OVER_STANDIN)                                   \
            STANDIN(unpaid)(0);                             \
        unpaid_result;                                      \
    })

/* The same for one that asks: "not yet" would be the error that the program finds when it
 * asks for its own. */
#define ASK(function, ...)                                               \
    ({                                                                   \
        bool pending = CALL(BELOW(cudaPeekAtLastError)) != cudaSuccess;  \
        cudaError_t answer_ =                                            \
            pending ? cudaErrorNotReady : UNPAID(function, __VA_ARGS__); \
        if (!pending && answer_ != cudaSuccess)                          \
            CALL(BELOW(cudaGetLastError));                               \
        answer_;                                                         \
    })

/* What is forbidden while a stream of the program's is captured, does not belong to it.
 */
static void capture_aside(bool begins) {
#if !OVER_STANDIN
    static __thread enum cudaStreamCaptureMode before;
    if (begins)
        before = cudaStreamCaptureModeRelaxed;
    CALL(BELOW(cudaThreadExchangeStreamCaptureMode), &before);
#else
    (void)begins;
#endif
}

/* More would be too much for rank 0, which gets those of all. */
enum { MOST_NOTES = 200000, NONE = -1 };
/* For the start of an operation, which counts from its device's base event. */
enum { NOT_BEGUN = -1 };

static struct entry {
    struct trace_note note;
    int next; // of the same span
} * entries;
static size_t nentries, entries_room, nlost;
static int rank, nranks = 1;
static char host[JUDGE_HOST];

/* With the lock held. NONE: there is no more room. */
static int add_note(const struct trace_note *note) {
    if (nentries == MOST_NOTES) {
        nlost++;
        return NONE;
    }
    if (nentries == entries_room) {
        entries_room = entries_room ? 2 * entries_room : 256;
        entries = must_grow(entries, entries_room * sizeof *entries);
    }
    entries[nentries] = (struct entry){*note, NONE};
    return (int)nentries++;
}

static void copy_name(char to[TRACE_NAME], const char *from) {
    snprintf(to, TRACE_NAME, "%s", from);
}

static struct map counters;

/* How often this was called with these numbers, from 1. With the lock held. */
static uint64_t count(uint64_t a, uint64_t b) {
    uint64_t key = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    uint64_t *counter = table_get(&counters, (void *)(uintptr_t)key);
    if (!counter)
        table_put(&counters, (void *)(uintptr_t)key,
                  counter = must_alloc(sizeof *counter));
    return ++*counter;
}

enum { MAX_DEVICES = 256 };
static struct device {
    atomic_int state; // 0: unknown, 1: on the way, 2: there, -1: not to be had
    cudaEvent_t base;
    cudaStream_t stream;
    double host_base; // when the base event happened, by the host's clock
    double rate;      // seconds of the host's in one of the device's
    cudaEvent_t *unused;
    size_t nunused, room;
} devices[MAX_DEVICES];
static int first_device = -1;

static int go_to(int device) {
    int before = current_device();
    if (device != before)
        CALL(BELOW(cudaSetDevice), device);
    return before;
}

static void go_back(int device, int before) {
    if (device != before)
        CALL(BELOW(cudaSetDevice), before);
}

/* Records `event`, and says when that was by the host's clock. False: it takes too long,
 * something is in its way. */
static bool meet_clocks(const struct device *device, cudaEvent_t event, double *when) {
    enum { TRIES = 5 };
    double shortest = 0;
    for (int i = 0; i < (OVER_STANDIN ? 1 : TRIES); i++) {
        double before = host_time();
        if (UNPAID(BELOW(cudaEventRecord), event, device->stream) != cudaSuccess)
            return false;
        double after, give_up = real_time() + 0.5;
        for (;;) {
            cudaError_t error = ASK(BELOW(cudaEventQuery), event);
            after = host_time();
            if (error == cudaSuccess)
                break;
            if (error != cudaErrorNotReady || real_time() > give_up)
                return false;
        }
        // Each try records the event anew: the last one must be what is measured.
        shortest = after - before;
        *when = clock_name() ? before : (before + after) / 2;
        if (i >= TRIES / 2 && shortest < 20e-6)
            break;
    }
    return true;
}

void timeline_device(void) {
    int number = current_device();
    struct device *device = number >= 0 && number < MAX_DEVICES ? &devices[number] : NULL;
    int unknown = 0;
    if (!(timeline_on & TIMELINE_FILE) || !device || atomic_load(&device->state) != 0 ||
        CALL(BELOW(cudaPeekAtLastError)) != cudaSuccess ||
        !atomic_compare_exchange_strong(&device->state, &unknown, 1))
        return;
    capture_aside(true);
    cudaError_t error =
        UNPAID(BELOW(cudaStreamCreateWithFlags), &device->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = UNPAID(BELOW(cudaEventCreateWithFlags), &device->base, cudaEventDefault);
    bool there =
        error == cudaSuccess && meet_clocks(device, device->base, &device->host_base);
    capture_aside(false);
    device->rate = 1;
    if (first_device < 0)
        first_device = number;
    atomic_store(&device->state, there ? 2 : -1);
}

/* An event of the current device; NULL: there is none. */
static cudaEvent_t take_event(struct device *device) {
    cudaEvent_t event = NULL;
    pthread_mutex_lock(&lock);
    if (device->nunused > 0)
        event = device->unused[--device->nunused];
    pthread_mutex_unlock(&lock);
    if (!event) {
        capture_aside(true);
        if (UNPAID(BELOW(cudaEventCreateWithFlags), &event, cudaEventDefault) !=
            cudaSuccess)
            event = NULL;
        capture_aside(false);
    }
    return event;
}

/* With the lock held. */
static void give_event(struct device *device, cudaEvent_t event) {
    if (!event)
        return;
    if (device->nunused == device->room) {
        device->room = device->room ? 2 * device->room : 64;
        device->unused = must_grow(device->unused, device->room * sizeof *device->unused);
    }
    device->unused[device->nunused++] = event;
}

/* What lies between two events of a stream. */
struct span {
    struct span *next;
    int track; // NONE: nothing is recorded, in a capture
    int device;
    cudaStream_t stream;
    cudaEvent_t start, end;
    int first, last; // of its notes
    bool ended;      // `end` is recorded
    bool waits, may_return_at_once;
    bool done;     // when the call returns
    uint64_t comm; // that will say when its end can be recorded (blocking = 0)
};

static struct track {
    struct trace_track shown;
    int number;                // the judge's
    struct span *first, *last; // not read yet
    cudaEvent_t newest;        // the end of the last one that was
    double time;               // of it, from the device's base event on
} * tracks;
static size_t ntracks, tracks_room;

/* With the lock held. */
static int track_of(int number, cudaStream_t stream, int device) {
    int before = 0;
    int kind = !stream || stream == cudaStreamLegacy ? 1
               : stream == cudaStreamPerThread       ? 2
                                                     : 0;
    for (size_t t = 0; t < ntracks; t++) {
        if (tracks[t].number == number)
            return (int)t;
        before += tracks[t].shown.kind == kind && tracks[t].shown.device == device;
    }
    if (ntracks == tracks_room) {
        tracks_room = tracks_room ? 2 * tracks_room : 16;
        tracks = must_grow(tracks, tracks_room * sizeof *tracks);
    }
    tracks[ntracks] =
        (struct track){.shown = {device, before + 1, kind}, .number = number};
    return (int)ntracks++;
}

/* Seconds between two events; negative: not yet. */
static double between(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    cudaError_t error = ASK(BELOW(cudaEventElapsedTime), &ms, from, to);
    return error != cudaSuccess ? -1 : ms > 0 ? (double)ms * 1e-3 : 0;
}

/* Of the span that is to be read next, if its second event is recorded; and where its
 * times begin. */
struct next {
    struct span *span; // NULL: there is none
    struct device *device;
    cudaEvent_t from;
    double time;
};

static struct next next_of(size_t t, bool ended) {
    struct next next = {0};
    pthread_mutex_lock(&lock);
    const struct track *track = &tracks[t];
    struct span *span = track->first;
    if (span && span->start && (span->ended || !ended) &&
        atomic_load(&devices[span->device].state) == 2) {
        struct device *device = &devices[span->device];
        next = (struct next){span, device, track->newest ? track->newest : device->base,
                             track->time};
    }
    pthread_mutex_unlock(&lock);
    return next;
}

/* Takes what is over from the beginning of a track. `ask`: it is not known to be over.
 * With `reading` held: nobody else takes anything away. */
static void read_track(size_t t, bool ask) {
    for (struct next next; next = next_of(t, true), next.span;) {
        struct span *span = next.span;
        if (ask && ASK(BELOW(cudaEventQuery), span->end) != cudaSuccess)
            return;
        double gap = between(next.from, span->start);
        double length = gap < 0 ? -1 : between(span->start, span->end);
        if (length < 0)
            return;
        double start = next.time + gap;
        pthread_mutex_lock(&lock);
        struct track *track = &tracks[t];
        for (int i = span->first; i != NONE; i = entries[i].next) {
            entries[i].note.start = start;
            entries[i].note.end = start + length;
        }
        give_event(next.device, track->newest);
        give_event(next.device, span->start);
        track->newest = span->end;
        track->time = start + length;
        track->first = span->next;
        if (!track->first)
            track->last = NULL;
        pthread_mutex_unlock(&lock);
        free(span);
    }
}

/* What was begun and is not over. */
static void read_begun(size_t t) {
    struct next next = next_of(t, false);
    if (!next.span || ASK(BELOW(cudaEventQuery), next.span->start) != cudaSuccess)
        return;
    double gap = between(next.from, next.span->start);
    pthread_mutex_lock(&lock);
    for (int i = gap < 0 ? NONE : next.span->first; i != NONE; i = entries[i].next)
        entries[i].note.start = next.time + gap;
    pthread_mutex_unlock(&lock);
}

/* Those of a stream (a track's number), or of a device, or NONE, are known to be over. */
static void read_tracks(int known_track, int known_device) {
    if (ntracks == 0 || pthread_mutex_trylock(&reading) != 0)
        return; // without a track there may be no CUDA
    capture_aside(true);
    for (size_t t = 0;; t++) {
        pthread_mutex_lock(&lock);
        bool there = t < ntracks;
        bool known =
            there && ((int)t == known_track || tracks[t].shown.device == known_device);
        pthread_mutex_unlock(&lock);
        if (!there)
            break;
        // Asking the stand-in is no idle question: it does what is queued.
        if (known || !OVER_STANDIN)
            read_track(t, !known);
    }
    capture_aside(false);
    pthread_mutex_unlock(&reading);
}

/* Records the first event. The span has no track where nothing can be recorded. */
static void span_opens(struct span *span, cudaStream_t stream, int device) {
    *span = (struct span){.track = NONE, .first = NONE, .last = NONE, .stream = stream};
    if (nlost > 0 || stream_capturing(stream))
        return;
    int number = stream_number(stream, device, &span->device);
    if (number < 0 || span->device < 0 || span->device >= MAX_DEVICES)
        return;
    int before = go_to(span->device);
    timeline_device();
    if (atomic_load(&devices[span->device].state) > 0) {
        span->start = take_event(&devices[span->device]);
        span->end = take_event(&devices[span->device]);
    }
    if (span->end && UNPAID(BELOW(cudaEventRecord), span->start, stream) == cudaSuccess) {
        pthread_mutex_lock(&lock);
        span->track = track_of(number, stream, span->device);
        struct track *track = &tracks[span->track];
        if (track->last)
            track->last->next = span;
        else
            track->first = span;
        track->last = span;
        pthread_mutex_unlock(&lock);
    } else {
        pthread_mutex_lock(&lock);
        give_event(&devices[span->device], span->start);
        give_event(&devices[span->device], span->end);
        pthread_mutex_unlock(&lock);
    }
    go_back(span->device, before);
}

static void span_notes(struct span *span, const struct timeline_op *op, int group) {
    struct trace_note note = {.start = NOT_BEGUN,
                              .end = NOT_BEGUN - 1,
                              .site = op->at.site,
                              .track = span->track,
                              .group = group,
                              .waited = -2,
                              .device = span->device,
                              .world = -1,
                              .bytes = op->bytes,
                              .count = op->count,
                              .comm = op->comm,
                              .number = op->number,
                              .rank = op->rank,
                              .type = op->type,
                              .redop = op->redop,
                              .root = op->root,
                              .peer = op->peer,
                              .collective = op->collective};
    copy_name(note.name, op->name);
    copy_name(note.call, op->at.call);
    pthread_mutex_lock(&lock);
    if (op->number) {
        bool send = strcmp(op->name, "ncclSend") == 0;
        note.order =
            count(op->comm, op->collective ? (uint64_t)op->rank << 2
                                           : (uint64_t)(op->peer + 1) << 32 |
                                                 (uint64_t)op->rank << 2 | 1 | send << 1);
    }
    int index = span->track == NONE ? NONE : add_note(&note);
    if (index != NONE && span->last != NONE)
        entries[span->last].next = index;
    else if (index != NONE)
        span->first = index;
    if (index != NONE)
        span->last = index;
    pthread_mutex_unlock(&lock);
}

/* It did not happen, or its end cannot be recorded. With the lock held. */
static void forget(struct span *span) {
    struct track *track = &tracks[span->track];
    struct span **at = &track->first, *before = NULL;
    for (; *at && *at != span; at = &(*at)->next)
        before = *at;
    if (*at)
        *at = span->next;
    if (track->last == span)
        track->last = before;
    for (int i = span->first; i != NONE; i = entries[i].next)
        entries[i].note.name[0] = '\0';
    give_event(&devices[span->device], span->start);
    give_event(&devices[span->device], span->end);
    free(span);
}

/* Records the second event. Another thread may read and free the span as soon as that is
 * told. */
static void span_closes(struct span *span, int result) {
    if (span->track == NONE) {
        free(span);
        return;
    }
    int device = span->device, before = go_to(device);
    bool there = result == 0 &&
                 UNPAID(BELOW(cudaEventRecord), span->end, span->stream) == cudaSuccess;
    // The stand-in does what is queued when it is asked.
    if (there && span->done && OVER_STANDIN)
        ASK(BELOW(cudaEventQuery), span->end);
    int done = there && span->done ? span->track : NONE;
    pthread_mutex_lock(&lock);
    if (there)
        span->ended = true;
    else
        forget(span);
    pthread_mutex_unlock(&lock);
    if (done != NONE)
        read_tracks(done, NONE);
    go_back(device, before);
}

static __thread int my_thread = NONE, my_note = NONE;
static int nthreads;

static int thread_number(void) {
    if (my_thread == NONE) {
        pthread_mutex_lock(&lock);
        my_thread = nthreads++;
        pthread_mutex_unlock(&lock);
    }
    return my_thread;
}

static void host_begins(struct judge_at at, struct trace_note note) {
    note.track = -1 - thread_number();
    note.start = host_time();
    note.end = note.start - 1;
    note.site = at.site;
    note.rank = note.type = note.redop = note.root = note.peer = -1;
    copy_name(note.name, at.call);
    copy_name(note.call, at.call);
    pthread_mutex_lock(&lock);
    if (note.comm)
        note.order = count(note.comm, UINT64_MAX);
    my_note = add_note(&note);
    pthread_mutex_unlock(&lock);
}

/* `may_return_at_once`: it is no wait if it was short. */
static void host_ends(bool may_return_at_once) {
    const double short_time = 1e-4;
    double now = host_time();
    pthread_mutex_lock(&lock);
    if (my_note != NONE) {
        struct trace_note *note = &entries[my_note].note;
        note->end = now;
        if (may_return_at_once && now - note->start < short_time)
            note->name[0] = '\0';
        if (!note->name[0] && (size_t)my_note == nentries - 1)
            nentries--;
    }
    my_note = NONE;
    pthread_mutex_unlock(&lock);
}

static __thread struct { // what the host waits for now
    int track, device;   // or NONE
    bool may_return_at_once;
} waits_for;

void timeline_waits(const struct timeline_wait *wait) {
    struct trace_note note = {.waited = -2, .world = wait->world, .comm = wait->group};
    int number = -1;
    RANGE_BEGINS(wait->at.call);
    if (!(timeline_on & TIMELINE_FILE))
        return;
    note.device = wait->device >= 0 || !(wait->on_stream || wait->on_device)
                      ? wait->device
                      : current_device();
    if (wait->on_device)
        note.waited = -1;
    if (wait->on_stream)
        number = stream_number(wait->stream, note.device, &note.device);
    waits_for.may_return_at_once = wait->may_return_at_once;
    waits_for.track = NONE;
    waits_for.device = wait->on_device ? note.device : NONE;
    if (number >= 0) {
        pthread_mutex_lock(&lock);
        note.waited = waits_for.track = track_of(number, wait->stream, note.device);
        pthread_mutex_unlock(&lock);
    }
    host_begins(wait->at, note);
}

void timeline_waited(void) {
    RANGE_ENDS();
    if (!(timeline_on & TIMELINE_FILE))
        return;
    host_ends(waits_for.may_return_at_once);
    read_tracks(waits_for.track, waits_for.device);
}

struct span *timeline_begins(const struct timeline_op *op, cudaStream_t stream,
                             int device) {
    struct span *span = must_alloc(sizeof *span);
    RANGE_BEGINS(op->name);
    span->track = NONE;
    if (!(timeline_on & TIMELINE_FILE))
        return span;
    span_opens(span, stream, device);
    span_notes(span, op, 0);
    span->waits = op->waits;
    span->may_return_at_once = op->may_return_at_once;
    span->done = op->done;
    if (op->waits) {
        struct trace_note note = {.waited = span->track == NONE ? -2 : span->track,
                                  .device = span->device,
                                  .world = -1};
        host_begins(op->at, note);
    }
    return span;
}

void timeline_ends(struct span *span, int result) {
    RANGE_ENDS();
    if (span->waits)
        host_ends(span->may_return_at_once);
    span_closes(span, result);
}

void timeline_counts(uint64_t comm, int in) {
    if (!(timeline_on & TIMELINE_FILE))
        return;
    pthread_mutex_lock(&lock);
    count(comm, (uint64_t)in << 2);
    pthread_mutex_unlock(&lock);
}

/* Those of this thread's open group. */
static __thread struct {
    struct call {
        struct timeline_op op;
        cudaStream_t stream;
        int device;
    } * calls;
    size_t n, room;
    struct span **spans;
    size_t nspans;
} group;
static atomic_int groups;

void timeline_adds(const struct timeline_op *op, cudaStream_t stream, int device) {
    if (group.n == group.room) {
        group.room = group.room ? 2 * group.room : 16;
        group.calls = must_grow(group.calls, group.room * sizeof *group.calls);
    }
    group.calls[group.n++] = (struct call){*op, stream, device};
}

void timeline_adds_not(void) {
    if (group.n > 0)
        group.n--;
}

void timeline_group_begins(struct judge_at at) {
    char name[TRACE_NAME + 32] = "ncclGroupEnd";
    int number = group.n > 1 ? ++groups : 0;
    if (group.n > 0)
        snprintf(name, sizeof name, group.n > 1 ? "%s and %zu more" : "%s",
                 group.calls[0].op.name, group.n - 1);
    RANGE_BEGINS(name);
    group.nspans = 0;
    if (!(timeline_on & TIMELINE_FILE))
        return;
    free(group.spans);
    group.spans = must_alloc((group.n + 1) * sizeof *group.spans);
    for (size_t i = 0; i < group.n; i++) {
        const struct call *call = &group.calls[i];
        struct span *span = NULL;
        for (size_t k = 0; k < group.nspans && !span; k++)
            if (group.spans[k]->stream == call->stream &&
                (call->stream || group.spans[k]->device == call->device))
                span = group.spans[k];
        if (!span) {
            span = group.spans[group.nspans++] = must_alloc(sizeof *span);
            span_opens(span, call->stream, call->device);
        }
        span_notes(span, &call->op, number);
        span->comm = call->op.comm;
    }
    const struct trace_note note = {.waited = -2, .world = -1};
    host_begins(at, note);
}

/* Spans that end when their communicator says that it is there. */
static struct in_progress {
    struct in_progress *next;
    struct span *span;
} * in_progress;

void timeline_group_ends(int result, bool returned_early) {
    RANGE_ENDS();
    group.n = 0;
    if (timeline_on & TIMELINE_FILE)
        host_ends(true);
    for (size_t i = 0; i < group.nspans; i++) {
        if (!returned_early) {
            span_closes(group.spans[i], result);
            continue;
        }
        struct in_progress *wait = must_alloc(sizeof *wait);
        pthread_mutex_lock(&lock);
        *wait = (struct in_progress){in_progress, group.spans[i]};
        in_progress = wait;
        pthread_mutex_unlock(&lock);
    }
    group.nspans = 0;
}

static struct span *take_in_progress(uint64_t comm) {
    struct span *span = NULL;
    pthread_mutex_lock(&lock);
    for (struct in_progress **at = &in_progress; *at && !span;) {
        struct in_progress *wait = *at;
        if (wait->span->comm != comm) {
            at = &wait->next;
            continue;
        }
        span = wait->span;
        *at = wait->next;
        free(wait);
    }
    pthread_mutex_unlock(&lock);
    return span;
}

void timeline_comm_ready(uint64_t comm) {
    for (struct span *span; in_progress && (span = take_in_progress(comm));)
        span_closes(span, 0);
}

/* Reads what is over by now. What is not has a little time: the program may have left it
 * to itself. */
static void read_all(double patience) {
    bool all = false;
    for (double until = real_time() + patience; !all && ntracks > 0; nap()) {
        if (pthread_mutex_trylock(&reading) == 0) {
            all = true;
            capture_aside(true);
            for (size_t t = 0; t < ntracks; t++) {
                read_track(t, true);
                all &= !tracks[t].first;
            }
            for (size_t t = 0; t < ntracks && real_time() > until; t++)
                read_begun(t);
            capture_aside(false);
            pthread_mutex_unlock(&reading);
        }
        if (real_time() > until)
            break;
    }
}

static void measure_rates(void) {
#if !OVER_STANDIN
    for (int d = 0; d < MAX_DEVICES; d++) {
        struct device *device = &devices[d];
        double when, length;
        if (atomic_load(&device->state) != 2)
            continue;
        int before = go_to(d);
        cudaEvent_t event = take_event(device);
        if (event && meet_clocks(device, event, &when) &&
            (length = between(device->base, event)) > 0.1)
            device->rate = (when - device->host_base) / length;
        go_back(d, before);
    }
#endif
}

void timeline_device_reset(void) {
    int d = current_device();
    if (!(timeline_on & TIMELINE_FILE) || d < 0 || d >= MAX_DEVICES)
        return;
    CALL(BELOW(cudaDeviceSynchronize));
    read_tracks(NONE, d);
    pthread_mutex_lock(&lock);
    // The events are gone with the device, and a stream of this number does not come
    // again.
    for (size_t t = 0; t < ntracks; t++)
        if (tracks[t].shown.device == d) {
            tracks[t].first = tracks[t].last = NULL;
            tracks[t].newest = NULL;
        }
    // The next base event is another: these count by the host's clock from now on.
    for (size_t i = 0; i < nentries; i++) {
        struct trace_note *note = &entries[i].note;
        if (note->track < 0 || note->device != d || note->start < 0)
            continue;
        note->device = -1 - d;
        note->start += devices[d].host_base;
        note->end += devices[d].host_base;
    }
    devices[d].nunused = 0;
    atomic_store(&devices[d].state, 0);
    pthread_mutex_unlock(&lock);
}

static MPI_Comm ours = MPI_COMM_NULL;
static struct offset { // of this machine's clock from rank 0's
    double when, seconds;
} at_start, at_end;

/* Machines that have started at the same time are one: their processes have one clock. */
static bool is_far(void) {
    char id[64] = "", first[64];
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (in && !fgets(id, sizeof id, in))
        id[0] = '\0';
    if (in)
        fclose(in);
    memcpy(first, id, sizeof id);
    PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, ours);
    return !clock_name() && strcmp(first, id) != 0;
}

/* Rank 0 says what time it is; the quickest answer is the most exact. */
static struct offset measure_offset(void) {
    enum { ROUNDS = 20, TAG = 1 };
    struct offset best = {host_time(), 0};
    double shortest = 1e9, zero;
    int far = is_far();
    int *all = must_alloc((size_t)nranks * sizeof *all);
    PMPI_Gather(&far, 1, MPI_INT, all, 1, MPI_INT, 0, ours);
    for (int other = 1; rank == 0 && other < nranks; other++)
        for (int i = 0; all[other] && i < ROUNDS; i++) {
            PMPI_Recv(NULL, 0, MPI_BYTE, other, TAG, ours, MPI_STATUS_IGNORE);
            zero = host_time();
            PMPI_Send(&zero, 1, MPI_DOUBLE, other, TAG, ours);
        }
    for (int i = 0; far && i < ROUNDS; i++) {
        double before = host_time();
        PMPI_Send(NULL, 0, MPI_BYTE, 0, TAG, ours);
        PMPI_Recv(&zero, 1, MPI_DOUBLE, 0, TAG, ours, MPI_STATUS_IGNORE);
        double after = host_time();
        if (after - before < shortest) {
            shortest = after - before;
            best = (struct offset){(before + after) / 2, (before + after) / 2 - zero};
        }
    }
    free(all);
    return best;
}

static double by_rank_0(double time) {
    double length = at_end.when - at_start.when;
    double drift = length > 1 ? (at_end.seconds - at_start.seconds) / length : 0;
    return time - at_start.seconds - drift * (time - at_start.when);
}

static struct trace_part make_part(void) {
    struct trace_part part = {.rank = rank,
                              .device = first_device,
                              .threads = nthreads,
                              .lost = (int)nlost,
                              .now = by_rank_0(host_time()),
                              .ntracks = ntracks};
    memcpy(part.host, host, sizeof part.host);
    part.tracks = must_alloc((ntracks + 1) * sizeof *part.tracks);
    part.notes = must_alloc((nentries + 1) * sizeof *part.notes);
    for (size_t t = 0; t < ntracks; t++)
        part.tracks[t] = tracks[t].shown;
    for (size_t i = 0; i < nentries; i++) {
        struct trace_note note = entries[i].note;
        bool ended = note.end >= note.start;
        // What has not begun, has not happened yet.
        if (!note.name[0] || (note.track >= 0 && note.start == NOT_BEGUN))
            continue;
        if (note.track >= 0 && note.device >= 0) {
            const struct device *device = &devices[note.device];
            note.start = device->host_base + note.start * device->rate;
            note.end = device->host_base + note.end * device->rate;
        } else if (note.track >= 0) {
            note.device = -1 - note.device;
        }
        note.start = by_rank_0(note.start);
        note.end = ended ? by_rank_0(note.end) : note.start - 1;
        part.notes[part.nnotes++] = note;
    }
    return part;
}

static void free_part(struct trace_part *part) {
    free(part->notes);
    free(part->tracks);
}

/* The file is there in whole or not at all. What is no file, a pipe or /dev/null, is
 * written to, and stays what it is. */
static void write_file(struct trace_part *parts, int n) {
    char part[PATH_MAX + 32], clock[128] = "times are measured", *text = NULL;
    const char *machine = clock_name();
    size_t bytes = 0;
    bool lost = false;
    struct stat there;
    FILE *memory = open_memstream(&text, &bytes);
    if (machine)
        snprintf(clock, sizeof clock, "times are modelled on %s", machine);
    if (memory) {
        trace_write(memory, parts, n, clock, places_of);
        fclose(memory);
    }
    // A link to a file stays a link.
    char *real = realpath(file, NULL);
    const char *to = real ? real : file;
    bool at_once = stat(to, &there) == 0 && !S_ISREG(there.st_mode);
    if (at_once)
        snprintf(part, sizeof part, "%s", to);
    else
        snprintf(part, sizeof part, "%s.%d", to, (int)getpid());
    FILE *out = memory ? fopen(part, "w") : NULL;
    bool opened = out;
    bool written = opened && fwrite(text, 1, bytes, out) == bytes;
    written = opened && fclose(out) == 0 && written;
    if (!written || (!at_once && rename(part, to) != 0)) {
        fprintf(stderr, "NCCL TIMELINE: cannot write %s: %s\n", file, strerror(errno));
        if (opened && !at_once)
            unlink(part);
    }
    free(real);
    free(text);
    for (int p = 0; p < n; p++)
        lost |= parts[p].lost > 0;
    if (lost)
        fprintf(stderr,
                "NCCL TIMELINE: %s has the first %d operations of a rank, and no more\n",
                file, MOST_NOTES);
}

/* The parts of other ranks come in one piece. */
enum { ASKED = 3, PART = 4 };

static char *pack(const struct trace_part *part, int *bytes) {
    size_t tracks_bytes = part->ntracks * sizeof *part->tracks;
    size_t notes_bytes = part->nnotes * sizeof *part->notes;
    char *data = must_alloc(sizeof *part + tracks_bytes + notes_bytes);
    memcpy(data, part, sizeof *part);
    memcpy(data + sizeof *part, part->tracks, tracks_bytes);
    memcpy(data + sizeof *part + tracks_bytes, part->notes, notes_bytes);
    *bytes = (int)(sizeof *part + tracks_bytes + notes_bytes);
    return data;
}

static struct trace_part unpack(const char *data) {
    struct trace_part part;
    memcpy(&part, data, sizeof part);
    size_t tracks_bytes = part.ntracks * sizeof *part.tracks;
    size_t notes_bytes = part.nnotes * sizeof *part.notes;
    part.tracks = must_alloc(tracks_bytes + 1);
    part.notes = must_alloc(notes_bytes + 1);
    memcpy(part.tracks, data + sizeof part, tracks_bytes);
    memcpy(part.notes, data + sizeof part + tracks_bytes, notes_bytes);
    return part;
}

static void send_part(const struct trace_part *part, int to) {
    int bytes;
    char *data = pack(part, &bytes);
    PMPI_Send(data, bytes, MPI_BYTE, to, PART, ours);
    free(data);
}

/* From anybody. False: nothing has come. */
static bool receive_part(struct trace_part *part) {
    MPI_Message message;
    MPI_Status status;
    int there, bytes;
    PMPI_Improbe(MPI_ANY_SOURCE, PART, ours, &there, &message, &status);
    if (!there)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    char *data = must_alloc((size_t)bytes + 1);
    PMPI_Mrecv(data, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    *part = unpack(data);
    free(data);
    return true;
}

static int compare_ranks(const void *a, const void *b) {
    const struct trace_part *x = a, *y = b;
    return x->rank - y->rank;
}

/* This rank's part and those of others, as far as they come in so many seconds; 0: all
 * will come. */
static void write_parts(struct trace_part *mine, double patience) {
    struct trace_part *parts = must_alloc((size_t)nranks * sizeof *parts);
    int n = 1;
    parts[0] = *mine;
    for (double until = real_time() + patience;
         n < nranks && (patience == 0 || real_time() < until);)
        if (receive_part(&parts[n]))
            n++;
        else
            nap();
    qsort(parts, (size_t)n, sizeof *parts, compare_ranks);
    write_file(parts, n);
    for (int i = 0; i < n; i++)
        if (parts[i].notes != mine->notes)
            free_part(&parts[i]);
    free(parts);
}

/* It is written once, by whichever comes first. */
static atomic_bool end_begun;

static bool begin_end(void) {
    return (timeline_on & TIMELINE_FILE) && !atomic_exchange(&end_begun, true);
}

void timeline_gather(void) {
    if (ours == MPI_COMM_NULL || !begin_end())
        return;
    front_depth++;
    if (OVER_STANDIN)
        STANDIN(host_blocks)(1);
    read_all(0.2);
    measure_rates();
    at_end = measure_offset();
    struct trace_part part = make_part();
    if (rank == 0 && file[0])
        write_parts(&part, 0);
    else if (rank > 0)
        send_part(&part, 0);
    free_part(&part);
    PMPI_Barrier(ours); // the file is there when a rank goes on
    PMPI_Comm_free(&ours);
    if (OVER_STANDIN)
        STANDIN(host_blocks)(0);
    front_depth--;
}

void timeline_alone(void) {
    if (!nentries || !begin_end() || !file[0]) // a child that has nothing to do with it
        return;
    front_depth++;
    read_all(0.2);
    measure_rates();
    struct trace_part part = make_part();
    write_file(&part, 1);
    free_part(&part);
    front_depth--;
}

/* When the job ends. In a thread that is not the program's, device 0 is the current one:
 * to ask CUDA there would make a context on it, which takes longer than rank 0 waits. */
static void read_at_end(double patience) {
    if (first_device >= 0)
        go_to(first_device);
    read_all(patience);
}

/* CUDA may be what hangs. */
static void *read_at_death(void *read) {
    front_depth = 1;
    read_at_end(0.05);
    atomic_store((atomic_bool *)read, true);
    return NULL;
}

void timeline_dies(bool ask) {
    static atomic_bool read;
    pthread_t thread;
    if (!nentries || !begin_end() || !file[0])
        return;
    front_depth++;
    for (int other = 0; ask && ours != MPI_COMM_NULL && other < nranks; other++) {
        MPI_Request request;
        if (other == rank)
            continue;
        PMPI_Isend(NULL, 0, MPI_BYTE, other, ASKED, ours, &request);
        PMPI_Request_free(&request);
    }
    if (pthread_create(&thread, NULL, read_at_death, &read) == 0)
        pthread_detach(thread);
    for (double until = real_time() + 1; real_time() < until && !atomic_load(&read);)
        nap();
    pthread_mutex_lock(&lock);
    struct trace_part part = make_part();
    pthread_mutex_unlock(&lock);
    write_parts(&part, ask && ours != MPI_COMM_NULL ? 0.5 : 1e-9);
    front_depth--;
}

void timeline_asked(void) {
    int there = 0;
    MPI_Status status;
    if (ours == MPI_COMM_NULL || atomic_load(&end_begun))
        return;
    PMPI_Iprobe(MPI_ANY_SOURCE, ASKED, ours, &there, &status);
    if (!there)
        return;
    PMPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, ASKED, ours, MPI_STATUS_IGNORE);
    read_at_end(0);
    pthread_mutex_lock(&lock);
    struct trace_part part = make_part();
    pthread_mutex_unlock(&lock);
    send_part(&part, status.MPI_SOURCE);
    free_part(&part);
}

void timeline_start(void) {
    const char *name = getenv("NCCL_TIMELINE");
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    if (!OVER_STANDIN && getenv("NVTX_INJECTION64_PATH"))
        timeline_on |= TIMELINE_RANGES;
    if (!name || !name[0])
        return;
    timeline_on |= TIMELINE_FILE;
    // The program may go to another folder.
    char *folder = name[0] == '/' ? NULL : getcwd(NULL, 0);
    if (folder)
        snprintf(file, sizeof file, "%s/%s", folder, name);
    else
        snprintf(file, sizeof file, "%s", name);
    free(folder);
}

void timeline_world(int world, int n, const char *name, int on) {
    rank = world;
    nranks = n;
    snprintf(host, sizeof host, "%s", name);
    timeline_on = (timeline_on & ~TIMELINE_FILE) | (on & TIMELINE_FILE);
    if (!(timeline_on & TIMELINE_FILE))
        return;
    PMPI_Comm_dup(MPI_COMM_WORLD, &ours);
    PMPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
    at_start = measure_offset();
}

void timeline_forked(void) {
    timeline_on = 0;
}
