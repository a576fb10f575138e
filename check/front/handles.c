/*
 * handles.c: the program's handles, and the judge's numbers for what they stand for.
 */
#include "handles.h"

struct stream {
    int number, device; // number -1: destroyed; its handle may come again
};

enum { MAX_DEVICES = 256 };
static struct map streams;
/* What stands for the default streams in the table: the legacy one of each device, and
 * one for each thread and device. */
static char legacy[MAX_DEVICES];
static __thread char per_thread[MAX_DEVICES];

static int announce(struct judge *j, const void *key, enum judge_stream_kind kind,
                    int device, struct judge_at at) {
    struct stream *stream = table_get(&streams, key);
    if (!stream)
        table_put(&streams, key, stream = must_alloc(sizeof *stream));
    *stream = (struct stream){judge_stream_made(j, kind, device, at), device};
    return stream->number;
}

int current_device(void) {
    int device = 0;
    CALL(BELOW(cudaGetDevice), &device);
    return device;
}

/* A stream that the driver or another library made. */
static bool ask(cudaStream_t handle, unsigned *flags, int *device) {
#if !OVER_STANDIN
    if (CALL(BELOW(cudaStreamGetFlags), handle, flags) != cudaSuccess)
        return false;
#if CUDART_VERSION >= 12080
    if (BELOW(cudaStreamGetDevice) &&
        CALL(BELOW(cudaStreamGetDevice), handle, device) == cudaSuccess)
        return true;
#endif
    *device = current_device();
    return true;
#else
    (void)handle, (void)flags, (void)device;
    return false;
#endif
}

static bool is_default(cudaStream_t handle) {
    return !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

static const void *key_of(cudaStream_t handle, int *device) {
    if (!is_default(handle))
        return handle;
    *device = *device < 0 ? current_device() : *device;
    *device = *device < MAX_DEVICES ? *device : 0;
    return handle == cudaStreamPerThread ? &per_thread[*device] : &legacy[*device];
}

bool stream_is_known(cudaStream_t handle, int device, int *number) {
    const struct stream *stream = table_get(&streams, key_of(handle, &device));
    if (!stream || (stream->number < 0 && is_default(handle)))
        return false;
    *number = stream->number;
    return true;
}

struct judge *front_in_stream(cudaStream_t handle, int device, int *number) {
    const void *key = key_of(handle, &device);
    bool own = handle == cudaStreamPerThread;
    struct judge *j = front_in();
    if (stream_is_known(handle, device, number))
        return j;
    // Without a name it is none of those that the program has to destroy.
    const struct judge_at nobody = {NULL, 0};
    if (is_default(handle)) {
        *number = announce(j, key, own ? JUDGE_BLOCKING : JUDGE_LEGACY, device, nobody);
        return j;
    }
    unsigned flags = cudaStreamDefault;
    front_out();
    bool known = ask(handle, &flags, &device);
    j = front_in();
    bool blocking = !(flags & cudaStreamNonBlocking);
    *number = known ? announce(j, key, blocking ? JUDGE_BLOCKING : JUDGE_NON_BLOCKING,
                               device, nobody)
                    : -1;
    return j;
}

int stream_number(cudaStream_t handle, int device, int *on) {
    int number;
    const void *key = key_of(handle, &device);
    front_in_stream(handle, device, &number);
    const struct stream *stream = table_get(&streams, key);
    *on = stream ? stream->device : 0;
    front_out();
    return number;
}

bool stream_capturing(cudaStream_t stream) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (!stream || stream == cudaStreamLegacy)
        return false;
    CALL(BELOW(cudaStreamIsCapturing), stream, &status);
    return status != cudaStreamCaptureStatusNone;
}

void stream_made(struct judge *j, cudaStream_t handle, bool blocking, int device,
                 struct judge_at at) {
    announce(j, handle, blocking ? JUDGE_BLOCKING : JUDGE_NON_BLOCKING, device, at);
}

static void gone(struct judge *j, struct stream *stream) {
    if (stream->number >= 0)
        judge_stream_gone(j, stream->number);
    stream->number = -1; // to ask the library about it would be a use after the end
}

void stream_gone(struct judge *j, cudaStream_t handle) {
    struct stream *stream = table_get(&streams, handle);
    if (stream)
        gone(j, stream);
}

void streams_reset(struct judge *j, int device) {
    for (size_t i = 0; i < streams.size; i++) {
        struct stream *stream = streams.at[i].value;
        if (stream && stream->device == device)
            gone(j, stream);
    }
}

enum which_rows add_rows(const struct rows *rows, bool write, bool device,
                         struct judge_range *ranges, int *n) {
    struct judge_range range = {rows->start, rows->width * rows->height, write, device};
    if (rows->height == 0)
        return NO_ROWS;
    if (rows->height == 1 || rows->pitch == rows->width) {
        ranges[(*n)++] = range;
        return ALL_ROWS;
    }
    range.bytes = rows->width;
    const bool some = rows->height > MOST_ROWS;
    const size_t nrows = some ? MOST_ROWS : rows->height,
                 left_out = rows->height - nrows; // after the first half
    for (size_t i = 0; i < nrows; i++) {
        size_t row = some && i >= nrows / 2 ? i + left_out : i;
        range.start = (const char *)rows->start + row * rows->pitch;
        ranges[(*n)++] = range;
    }
    return some ? SOME_ROWS : ALL_ROWS;
}

void open_rows(struct judge *j, const struct rows *rows, enum which_rows which) {
    if (which == SOME_ROWS)
        judge_memory_open(j, rows->start);
}
