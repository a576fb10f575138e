/*
 * capture.c has what is queued on streams that are being captured: nodes, and for each of
 * them which others it comes after.
 *
 * A stream belongs to a capture because it began there, or because it waited for an event
 * of it; what it queues comes after what it queued, and what it waited for.
 * CUDA Programming Guide, "Creating a Graph Using Stream Capture".
 */
#include "cuda/capture.h"

#include <pthread.h>

struct member { // a stream of a capture, and where it has come to
    struct stream *stream;
    struct point at;
};

struct recording {
    struct capture capture;
    uint64_t number;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    bool spoilt;
    struct stream *origin;
    struct member *members;
    int nmembers;
    struct nodes nodes;
    struct recording *next;
};
static struct recording *recordings;

/* --- Points and nodes ------------------------------------------------------------- */

void point_add(struct point *point, const struct point *more) {
    for (int i = 0; i < more->n; i++) {
        int k = 0;
        while (k < point->n && point->nodes[k] != more->nodes[i])
            k++;
        if (k < point->n)
            continue;
        point->nodes =
            base_grow(point->nodes, (size_t)(point->n + 1) * sizeof *point->nodes);
        point->nodes[point->n++] = more->nodes[i];
    }
}

void nodes_free(struct nodes *nodes) {
    for (int i = 0; i < nodes->n; i++) {
        op_free(nodes->all[i].op);
        free(nodes->all[i].after.nodes);
    }
    free(nodes->all);
    *nodes = (struct nodes){0};
}

/* --- Captures --------------------------------------------------------------------- */

static struct recording *recording_of(const struct stream *stream) {
    return (struct recording *)stream->capture;
}

static struct recording *recording_number(uint64_t number) {
    struct recording *recording = recordings;
    while (recording && recording->number != number)
        recording = recording->next;
    return recording;
}

static struct point *place_of(struct recording *recording, const struct stream *stream) {
    for (int i = 0; i < recording->nmembers; i++)
        if (recording->members[i].stream == stream)
            return &recording->members[i].at;
    return NULL;
}

static void take(struct capture *capture, struct stream *stream, struct op *op) {
    struct recording *recording = (struct recording *)capture;
    struct nodes *nodes = &recording->nodes;
    struct point *at = place_of(recording, stream);
    nodes->all = base_grow(nodes->all, (size_t)(nodes->n + 1) * sizeof *nodes->all);
    nodes->all[nodes->n] =
        (struct node){.op = op, .after = *at, .device = stream->device};
    at->nodes = base_grow(NULL, sizeof *at->nodes);
    at->nodes[0] = nodes->n++;
    at->n = 1;
}

static void add_member(struct recording *recording, struct stream *stream) {
    recording->members = base_grow(recording->members, (size_t)(recording->nmembers + 1) *
                                                           sizeof *recording->members);
    recording->members[recording->nmembers++] = (struct member){.stream = stream};
    stream->capture = &recording->capture;
}

cudaError_t capture_begin(struct stream *stream, enum cudaStreamCaptureMode mode) {
    static uint64_t numbers;
    if (stream->capture)
        return cudaErrorIllegalState;
    struct recording *recording = base_alloc(sizeof *recording);
    *recording = (struct recording){.capture.take = take,
                                    .number = ++numbers,
                                    .mode = mode,
                                    .thread = pthread_self(),
                                    .origin = stream,
                                    .next = recordings};
    recordings = recording;
    add_member(recording, stream);
    return cudaSuccess;
}

/* Whether every node comes before what the origin would queue next. */
static bool joined(struct recording *recording) {
    const struct nodes *nodes = &recording->nodes;
    bool *reached = base_alloc((size_t)nodes->n + 1);
    const struct point *end = place_of(recording, recording->origin);
    for (int i = 0; i < end->n; i++)
        reached[end->nodes[i]] = true;
    bool all = true;
    for (int i = nodes->n - 1; i >= 0; i--) {
        all &= reached[i];
        for (int k = 0; reached[i] && k < nodes->all[i].after.n; k++)
            reached[nodes->all[i].after.nodes[k]] = true;
    }
    free(reached);
    return all;
}

cudaError_t capture_end(struct stream *stream, struct nodes *out) {
    struct recording *recording = recording_of(stream);
    if (!recording)
        return cudaErrorIllegalState;
    if (recording->origin != stream) {
        recording->spoilt = true;
        return cudaErrorStreamCaptureUnmatched;
    }
    if (recording->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(recording->thread, pthread_self()))
        return cudaErrorStreamCaptureWrongThread;
    cudaError_t error = recording->spoilt    ? cudaErrorStreamCaptureInvalidated
                        : !joined(recording) ? cudaErrorStreamCaptureUnjoined
                                             : cudaSuccess;
    if (error == cudaSuccess)
        *out = recording->nodes;
    else
        nodes_free(&recording->nodes);
    for (int i = 0; i < recording->nmembers; i++) {
        struct stream *member = recording->members[i].stream;
        free(recording->members[i].at.nodes);
        member->capture = NULL;
        if (member->destroyed)
            stream_retire(member);
    }
    free(recording->members);
    struct recording **at = &recordings;
    while (*at != recording)
        at = &(*at)->next;
    *at = recording->next;
    free(recording);
    return error;
}

bool capture_spoilt(const struct stream *stream) {
    return stream->capture && recording_of(stream)->spoilt;
}

void capture_spoil(struct stream *stream) {
    if (stream->capture)
        recording_of(stream)->spoilt = true;
}

cudaError_t capture_ask(uint64_t number) {
    const struct recording *recording = recording_number(number);
    return !number                           ? cudaSuccess
           : !recording || recording->spoilt ? cudaErrorInvalidValue
                                             : cudaErrorCapturedEvent;
}

void capture_spoil_number(uint64_t number) {
    struct recording *recording = recording_number(number);
    if (recording)
        recording->spoilt = true;
}

uint64_t capture_number(const struct stream *stream) {
    return stream->capture ? recording_of(stream)->number : 0;
}

const struct point *capture_point(const struct stream *stream) {
    return place_of(recording_of(stream), stream);
}

cudaError_t capture_wait(struct stream *stream, uint64_t number,
                         const struct point *point) {
    struct recording *mine = recording_of(stream), *its = recording_number(number);
    cudaError_t error = cudaSuccess;
    if (!its || (its->spoilt && !mine)) // that capture is over, or was broken off
        error = cudaErrorInvalidValue;
    else if (stream->legacy)
        error = cudaErrorStreamCaptureImplicit;
    else if (mine && mine != its)
        error = cudaErrorStreamCaptureMerge;
    if (error != cudaSuccess) {
        capture_spoil(stream);
        if (its)
            its->spoilt = true;
        return error;
    }
    if (!mine)
        add_member(its, stream);
    point_add(place_of(its, stream), point);
    return cudaSuccess;
}

static bool forbidden_by(const struct recording *recording) {
    return recording->mode == cudaStreamCaptureModeGlobal ||
           (recording->mode == cudaStreamCaptureModeThreadLocal &&
            pthread_equal(recording->thread, pthread_self()));
}

bool capture_forbids(void) {
    for (struct recording *recording = recordings; recording; recording = recording->next)
        if (forbidden_by(recording)) {
            recording->spoilt = true;
            return true;
        }
    return false;
}

bool capture_in_the_way(const struct stream *stream) {
    for (int s = 0; s < nstreams; s++)
        if (stream->legacy && streams[s] && streams[s]->capture && streams[s]->blocking &&
            streams[s]->device == stream->device) {
            capture_spoil(streams[s]);
            return true;
        }
    return false;
}

cudaError_t stream_in_use(const struct stream *stream) {
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (capture_in_the_way(stream))
        return cudaErrorStreamCaptureImplicit;
    return device_broken(stream->device);
}

cudaError_t stream_join(struct stream *stream, struct stream *other) {
    if (stream == other)
        return cudaSuccess;
    if (other->capture)
        return capture_wait(stream, capture_number(other), capture_point(other));
    // A place in the other stream keeps step with the default stream, as its owner does.
    op_enqueue(op_nothing(), other);
    struct op *op = op_nothing();
    op_after(op, stream_end(other));
    op_enqueue(op, stream);
    return cudaSuccess;
}
