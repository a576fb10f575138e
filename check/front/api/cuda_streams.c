/*
 * cuda_streams.c: streams and events.
 *
 * What waits for what stands in CUDA Runtime API, "Stream synchronization behavior".
 */
#include "cuda_front.h"

#include "nccl_comms.h"

cudaError_t cuda_stream_there(cudaError_t error, const cudaStream_t *stream,
                              unsigned int flags, struct judge_at at) {
    if (error != cudaSuccess)
        return answer(error, at);
    int device = current_device();
    if (timeline_on)
        timeline_device();
    TELL(stream_made, *stream, !(flags & cudaStreamNonBlocking), device, at);
    return error;
}

/* Told before: the handle may come again as soon as it is given up. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    ENTER(cudaStreamDestroy, stream);
    stream_gone(front_in(), stream);
    comms_stream_gone(stream);
    front_out();
    return answer(CALL(BELOW(cudaStreamDestroy), stream), at);
}

/* By handle: the judge's number and the device, in one word. */
static struct map events;

static int number_of(const void *event) {
    return (int)((uintptr_t)event & UINT32_MAX) - 1; // -1: there is none
}

static int device_of(const void *event) {
    return (int)((uintptr_t)event >> 32);
}

static int announce_event(struct judge *j, cudaEvent_t handle, int device,
                          struct judge_at at) {
    const int number = judge_event_made(j, at);
    const uintptr_t event = (uintptr_t)device << 32 | (uintptr_t)(number + 1);
    table_put(&events, handle, (void *)event);
    return number;
}

/* An event that was not seen being made is another process's (cudaIpcOpenEventHandle), or
 * a library's. */
int event_number(struct judge *j, cudaEvent_t handle) {
    const int number = number_of(table_get(&events, handle));
    const struct judge_at at = {"another library", 0};
    if (number >= 0)
        return number;
    judge_shares_event(j);
    return announce_event(j, handle, 0, at);
}

void events_reset(struct judge *j, int device) {
    for (size_t i = 0; i < events.size;) {
        const void *event = events.at[i].value;
        if (event && device_of(event) == device) {
            judge_event_gone(j, number_of(event));
            table_put(&events, table_handle(&events, i), NULL);
        } else {
            i++;
        }
    }
}

cudaError_t cuda_event_there(cudaError_t error, const cudaEvent_t *event,
                             struct judge_at at) {
    if (error != cudaSuccess)
        return answer(error, at);
    int device = current_device();
    TELL(announce_event, *event, device, at);
    return error;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    ENTER(cudaEventDestroy, handle);
    struct judge *j = front_in();
    judge_event_gone(j, number_of(table_get(&events, handle)));
    table_put(&events, handle, NULL);
    front_out();
    return answer(CALL(BELOW(cudaEventDestroy), handle), at);
}

#if !OVER_STANDIN
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
    ENTER(cudaIpcGetEventHandle, handle, event);
    TELL(judge_shares_event);
    return answer(CALL(BELOW(cudaIpcGetEventHandle), handle, event), at);
}
#endif

static cudaError_t recorded(cudaError_t error, cudaEvent_t event, cudaStream_t stream,
                            struct judge_at at) {
    int number;
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_record(j, event_number(j, event), number, at);
    front_out();
    return error;
}

static cudaError_t event_record(cudaEvent_t event, cudaStream_t stream,
                                struct judge_at at) {
    return recorded(CALL(BELOW(cudaEventRecord), event, stream), event, stream, at);
}
ON_STREAM(cudaEventRecord, event_record, (cudaEvent_t event, cudaStream_t stream), event,
          stream)

#if !OVER_STANDIN
static cudaError_t event_record_with_flags(cudaEvent_t event, cudaStream_t stream,
                                           unsigned int flags, struct judge_at at) {
    return recorded(CALL(BELOW(cudaEventRecordWithFlags), event, stream, flags), event,
                    stream, at);
}
ON_STREAM(cudaEventRecordWithFlags, event_record_with_flags,
          (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, stream,
          flags)
#endif

static cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event,
                                     unsigned int flags, struct judge_at at) {
    int number;
    cudaError_t error = CALL(BELOW(cudaStreamWaitEvent), stream, event, flags);
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_stream_waits(j, number, event_number(j, event), at);
    front_out();
    return error;
}
ON_STREAM(cudaStreamWaitEvent, stream_wait_event,
          (cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event,
          flags)

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (!front_passes() && python_watchdog()) {
        const cudaError_t seen = CALL(BELOW(cudaEventQuery), event);
        cuda_watched(seen);
        return seen;
    }
    ENTER(cudaEventQuery, event);
    cudaError_t error = CALL(BELOW(cudaEventQuery), event);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return answer(error, at);
    struct judge *j = front_in();
    judge_poll_event(j, event_number(j, event), error == cudaSuccess, at);
    front_out();
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    ENTER_WAIT(cudaEventSynchronize, handle);
    struct judge *j = front_in();
    const int event = number_of(table_get(&events, handle));
    if (event >= 0)
        judge_wait_event(j, event, at);
    front_out();
    struct timeline_wait wait = {.at = at, .device = -1, .world = -1};
    cudaError_t error = HOST_WAITS(&wait, CALL(BELOW(cudaEventSynchronize), handle));
    return event >= 0 ? wait_over(error, true, at) : answer(error, at);
}

static cudaError_t elapsed(cudaError_t error, cudaEvent_t start, cudaEvent_t end,
                           struct judge_at at) {
    static __thread bool asked; // and it was not ready: the program may ask until it is
    front_timed = true;
    if (error != cudaSuccess) {
        asked |= error == cudaErrorNotReady;
        return answer(error, at);
    }
    struct judge *j = front_in(); // there is a time between them: both have happened
    if (asked)
        judge_looked(j);
    asked = false;
    judge_poll_event(j, event_number(j, start), true, at);
    judge_poll_event(j, event_number(j, end), true, at);
    front_out();
    return error;
}

#ifdef cudaEventElapsedTime // CUDA 12.8 and newer give it a second version by name
cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end) {
    ENTER_AS("cudaEventElapsedTime", cudaEventElapsedTime_v2, ms, start, end);
    return elapsed(CALL(BELOW(cudaEventElapsedTime_v2), ms, start, end), start, end, at);
}
#undef cudaEventElapsedTime
PUBLIC cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
#endif
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    ENTER(cudaEventElapsedTime, ms, start, end);
    return elapsed(CALL(BELOW(cudaEventElapsedTime), ms, start, end), start, end, at);
}
