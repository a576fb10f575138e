/*
 * tracks.c: what happened when in the streams.
 *
 * Round an operation an event is recorded in its stream, and one after it. They are read
 * when the host has waited for them anyway, or at the end. Times of a stream are added up
 * from event to event: from a base event to the first, from each to the next. What the
 * base event's time is by the host's clock is measured when the device is first used, and
 * again at the end, since the two clocks do not run equally fast. CUDA Runtime API,
 * "Event Management".
 */
#define _GNU_SOURCE
#include "tracks.h"

#include "timeline.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// In the headers of CUDA 12.8 this is the name of a second version, which older libraries
// lack.
#ifdef cudaEventElapsedTime
#undef cudaEventElapsedTime
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
#endif

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER; // of events, by one at a time

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
    pthread_mutex_lock(&notes_lock);
    if (device->nunused > 0)
        event = device->unused[--device->nunused];
    pthread_mutex_unlock(&notes_lock);
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

static struct track {
    struct trace_track shown;
    int number;                // the judge's
    struct span *first, *last; // not read yet
    cudaEvent_t newest;        // the end of the last one that was
    double time;               // of it, from the device's base event on
} * tracks;
static size_t ntracks, tracks_room;

/* With the lock held. */
int track_of(int number, cudaStream_t stream, int device) {
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
    pthread_mutex_lock(&notes_lock);
    const struct track *track = &tracks[t];
    struct span *span = track->first;
    if (span && span->start && (span->ended || !ended) &&
        atomic_load(&devices[span->device].state) == 2) {
        struct device *device = &devices[span->device];
        next = (struct next){span, device, track->newest ? track->newest : device->base,
                             track->time};
    }
    pthread_mutex_unlock(&notes_lock);
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
        pthread_mutex_lock(&notes_lock);
        struct track *track = &tracks[t];
        for (int i = span->first; i != NONE; i = notes.at[i].next) {
            notes.at[i].note.start = start;
            notes.at[i].note.end = start + length;
        }
        give_event(next.device, track->newest);
        give_event(next.device, span->start);
        track->newest = span->end;
        track->time = start + length;
        track->first = span->next;
        if (!track->first)
            track->last = NULL;
        pthread_mutex_unlock(&notes_lock);
        free(span);
    }
}

/* What was begun and is not over. */
static void read_begun(size_t t) {
    struct next next = next_of(t, false);
    if (!next.span || ASK(BELOW(cudaEventQuery), next.span->start) != cudaSuccess)
        return;
    double gap = between(next.from, next.span->start);
    pthread_mutex_lock(&notes_lock);
    for (int i = gap < 0 ? NONE : next.span->first; i != NONE; i = notes.at[i].next)
        notes.at[i].note.start = next.time + gap;
    pthread_mutex_unlock(&notes_lock);
}

/* Those of a stream (a track's number), or of a device, or NONE, are known to be over. */
void tracks_read(int known_track, int known_device) {
    if (ntracks == 0 || pthread_mutex_trylock(&reading) != 0)
        return; // without a track there may be no CUDA
    capture_aside(true);
    for (size_t t = 0;; t++) {
        pthread_mutex_lock(&notes_lock);
        bool there = t < ntracks;
        bool known =
            there && ((int)t == known_track || tracks[t].shown.device == known_device);
        pthread_mutex_unlock(&notes_lock);
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
void span_opens(struct span *span, cudaStream_t stream, int device) {
    *span = (struct span){.track = NONE, .first = NONE, .last = NONE, .stream = stream};
    if (notes.lost > 0 || stream_capturing(stream))
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
        pthread_mutex_lock(&notes_lock);
        span->track = track_of(number, stream, span->device);
        struct track *track = &tracks[span->track];
        if (track->last)
            track->last->next = span;
        else
            track->first = span;
        track->last = span;
        pthread_mutex_unlock(&notes_lock);
    } else {
        pthread_mutex_lock(&notes_lock);
        give_event(&devices[span->device], span->start);
        give_event(&devices[span->device], span->end);
        pthread_mutex_unlock(&notes_lock);
    }
    go_back(span->device, before);
}

void span_notes(struct span *span, const struct timeline_op *op, int group) {
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
    pthread_mutex_lock(&notes_lock);
    if (op->number) {
        bool send = strcmp(op->name, "ncclSend") == 0;
        note.order = notes_count(
            op->comm, op->collective ? (uint64_t)op->rank << 2
                                     : (uint64_t)(op->peer + 1) << 32 |
                                           (uint64_t)op->rank << 2 | 1 | send << 1);
    }
    int index = span->track == NONE ? NONE : notes_add(&note);
    if (index != NONE && span->last != NONE)
        notes.at[span->last].next = index;
    else if (index != NONE)
        span->first = index;
    if (index != NONE)
        span->last = index;
    pthread_mutex_unlock(&notes_lock);
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
    for (int i = span->first; i != NONE; i = notes.at[i].next)
        notes.at[i].note.name[0] = '\0';
    give_event(&devices[span->device], span->start);
    give_event(&devices[span->device], span->end);
    free(span);
}

/* Records the second event. Another thread may read and free the span as soon as that is
 * told. */
void span_closes(struct span *span, int result) {
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
    pthread_mutex_lock(&notes_lock);
    if (there)
        span->ended = true;
    else
        forget(span);
    pthread_mutex_unlock(&notes_lock);
    if (done != NONE)
        tracks_read(done, NONE);
    go_back(device, before);
}

/* Reads what is over by now. What is not has a little time: the program may have left it
 * to itself. */
void tracks_read_all(double patience) {
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

void tracks_measure_rates(void) {
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
    tracks_read(NONE, d);
    pthread_mutex_lock(&notes_lock);
    // The events are gone with the device, and a stream of this number does not come
    // again.
    for (size_t t = 0; t < ntracks; t++)
        if (tracks[t].shown.device == d) {
            tracks[t].first = tracks[t].last = NULL;
            tracks[t].newest = NULL;
        }
    // The next base event is another: these count by the host's clock from now on.
    for (size_t i = 0; i < notes.n; i++) {
        struct trace_note *note = &notes.at[i].note;
        if (note->track < 0 || note->device != d || note->start < 0)
            continue;
        note->device = -1 - d;
        note->start += devices[d].host_base;
        note->end += devices[d].host_base;
    }
    devices[d].nunused = 0;
    atomic_store(&devices[d].state, 0);
    pthread_mutex_unlock(&notes_lock);
}

struct trace_part tracks_part(double (*by)(double host_time)) {
    struct trace_part part = {.device = first_device,
                              .threads = notes.threads,
                              .lost = (int)notes.lost,
                              .now = by(host_time()),
                              .ntracks = ntracks};
    part.tracks = must_alloc((ntracks + 1) * sizeof *part.tracks);
    part.notes = must_alloc((notes.n + 1) * sizeof *part.notes);
    for (size_t t = 0; t < ntracks; t++)
        part.tracks[t] = tracks[t].shown;
    for (size_t i = 0; i < notes.n; i++) {
        struct trace_note note = notes.at[i].note;
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
        note.start = by(note.start);
        note.end = ended ? by(note.end) : note.start - 1;
        part.notes[part.nnotes++] = note;
    }
    return part;
}

void tracks_go_to_first(void) {
    if (first_device >= 0)
        go_to(first_device);
}
