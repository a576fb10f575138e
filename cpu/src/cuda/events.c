/*
 * events.c has the events of the CUDA runtime.
 * CUDA Runtime API, "Event Management".
 */
#include "cuda/capture.h"
#include "cuda/device.h"

struct stamp { // when an event happened; its operation may outlive it
    int users;
    double time;
};

struct CUevent_st {
    struct CUevent_st *next; // of those with the same hash
    bool recorded, timing;
    int device;
    struct mark mark; // where it was recorded
    struct stamp *stamp;
    uint64_t capture; // that it was recorded in, instead; 0: none
    struct point point;
};

struct event_op {
    struct op op;
    struct stamp *stamp;
};

enum { BUCKETS = 1024 };
static struct CUevent_st *events[BUCKETS];

static struct CUevent_st **place_of(cudaEvent_t handle) {
    struct CUevent_st **at = &events[(uintptr_t)handle / 32 % BUCKETS];
    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

static void give_up(struct stamp *stamp) {
    if (stamp && --stamp->users == 0)
        free(stamp);
}

static bool step_event(struct op *op) {
    struct event_op *event = (struct event_op *)op;
    event->stamp->time = clock_on ? op->start : now();
    return op->done = true;
}

static void drop_event(struct op *op) {
    give_up(((struct event_op *)op)->stamp);
}

static cudaError_t create_event(cudaEvent_t *out, unsigned int flags) {
    if (!out || flags & ~7u ||
        (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming)))
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = device_check(device_now());
    if (error != cudaSuccess)
        return cuda_error(error);
    struct CUevent_st *event = base_alloc(sizeof *event);
    event->timing = !(flags & cudaEventDisableTiming);
    event->device = device_now();
    *place_of(event) = event;
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
    CUDA_CALL;
    return create_event(out, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    CUDA_CALL;
    return create_event(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    CUDA_CALL;
    struct CUevent_st **at = place_of(handle);
    if (!*at)
        return cuda_error(cudaErrorInvalidResourceHandle);
    *at = handle->next;
    give_up(handle->stamp);
    free(handle->point.nodes);
    free(handle);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    CUDA_CALL;
    struct CUevent_st *event = *place_of(handle);
    struct stream *stream = stream_of(stream_handle, device_now());
    if (!event || !stream || event->device != stream->device)
        return cuda_error(cudaErrorInvalidResourceHandle);
    cudaError_t error = stream_in_use(stream);
    if (error != cudaSuccess)
        return cuda_error(error);
    event->point.n = 0;
    event->capture = capture_number(stream);
    event->recorded = !event->capture;
    if (event->capture) {
        point_add(&event->point, capture_point(stream));
        return cudaSuccess;
    }
    give_up(event->stamp);
    event->stamp = base_alloc(sizeof *event->stamp);
    event->stamp->users = 2;
    struct op *op = op_create(sizeof(struct event_op), step_event);
    op->drop = drop_event;
    ((struct event_op *)op)->stamp = event->stamp;
    op->cost.host = clock_event();
    op_enqueue(op, stream);
    event->mark = stream_end(stream);
    return cudaSuccess;
}

/* In a graph: for what the event holds when the graph is launched, cudaEventWaitExternal.
 */
struct wait_op {
    struct op op;
    cudaEvent_t event;
};

static bool step_wait(struct op *op) {
    op->done = true;
    return true;
}

static void wait_queued(struct op *op) {
    const struct CUevent_st *event = *place_of(((struct wait_op *)op)->event);
    if (event && event->recorded)
        op_after(op, event->mark);
}

static struct op *event_wait_op(cudaEvent_t event);
static struct op *another_wait(const struct op *op) {
    return event_wait_op(((const struct wait_op *)op)->event);
}

static struct op *event_wait_op(cudaEvent_t event) {
    struct op *op = op_create(sizeof(struct wait_op), step_wait);
    op->copy = another_wait;
    op->queued = wait_queued;
    op->cost.host = clock_event();
    ((struct wait_op *)op)->event = event;
    return op;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                unsigned int flags) {
    CUDA_CALL;
    struct CUevent_st *event = *place_of(handle);
    struct stream *stream = stream_of(stream_handle, device_now());
    if (!event || !stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (flags & ~(unsigned)cudaEventWaitExternal)
        return cuda_error(cudaErrorInvalidValue);
    if (event->capture)
        return cuda_error(capture_wait(stream, event->capture, &event->point));
    cudaError_t error = stream_in_use(stream);
    if (error == cudaSuccess && stream->capture && flags == cudaEventWaitExternal) {
        op_enqueue(event_wait_op(handle), stream);
        return cudaSuccess;
    }
    if (error != cudaSuccess || !event->recorded)
        return cuda_error(error);
    if (stream->capture) {
        capture_spoil(stream);
        return cuda_error(cudaErrorStreamCaptureIsolation);
    }
    struct op *op = op_nothing();
    op->cost.host = clock_event();
    op_after(op, event->mark);
    op_enqueue(op, stream);
    return cudaSuccess;
}

/* An event that a capture recorded stands for nothing that happens. */
static cudaError_t event_to_ask(const struct CUevent_st *event) {
    if (!event)
        return cudaErrorInvalidResourceHandle;
    cudaError_t error = capture_ask(event->capture);
    capture_spoil_number(event->capture);
    return error == cudaSuccess && capture_forbids() ? cudaErrorStreamCaptureUnsupported
                                                     : error;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    CUDA_CALL;
    struct CUevent_st *event = *place_of(handle);
    cudaError_t error = event_to_ask(event);
    if (error != cudaSuccess)
        return cuda_error(error);
    int device = event->device;
    if (event->recorded && (clock_on || !passed(event->mark)) && !poll_for(event->mark))
        return cudaErrorNotReady;
    return cuda_error(device_broken(device));
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    CUDA_CALL;
    struct CUevent_st *event = *place_of(handle);
    cudaError_t error = event_to_ask(event);
    if (error != cudaSuccess)
        return cuda_error(error);
    int device = event->device;
    if (event->recorded)
        wait_for(event->mark);
    return cuda_error(device_broken(device));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    CUDA_CALL;
    struct CUevent_st *first = *place_of(start), *second = *place_of(end);
    if (!ms)
        return cuda_error(cudaErrorInvalidValue);
    if (first && second && (first->capture || second->capture))
        return cuda_error(capture_ask(first->capture ? first->capture : second->capture));
    if (!first || !second || !first->recorded || !second->recorded || !first->timing ||
        !second->timing || first->device != second->device)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (clock_on ? !poll_for(first->mark) || !poll_for(second->mark)
                 : !passed(first->mark) || !passed(second->mark))
        return cudaErrorNotReady;
    *ms = (float)((second->stamp->time - first->stamp->time) * 1e3);
    return cudaSuccess;
}
