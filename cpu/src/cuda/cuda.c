/*
 * cuda.c has the copies and the streams of the CUDA runtime.
 * CUDA Runtime API, "Memory Management", "Stream Management", "API synchronization
 * behavior".
 */
#define _GNU_SOURCE
#include "cuda/cuda_aware.h"
#include "standin.h"
#include "cuda/capture.h"
#include "cuda/device.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- Copies ----------------------------------------------------------------------- */

/* So many rows of so many bytes, which begin a pitch apart. */
struct block {
    size_t width, rows, to_pitch, from_pitch;
};

static struct block in_a_row(size_t bytes) {
    return (struct block){bytes, 1, bytes, bytes};
}

/* From the first byte to the last, with what lies between the rows. */
static size_t extent(const struct block *block, size_t pitch) {
    return block->width && block->rows ? (block->rows - 1) * pitch + block->width : 0;
}

struct copy_op { // or a set, of `value`, if there is no source
    struct op op;
    void *to;
    const void *from;
    bool to_ours, from_ours; // they lay in allocations when the call was made
    void *staged;            // pageable host memory, as it was then
    bool of_graph;           // pageable host memory is read at each launch
    struct block block;
    int value, device;
};

/* Pageable memory may be gone when a graph is launched that was to copy it: the system
 * says so, where memmove would crash. */
static bool copy_from_host(char *to, const char *from, size_t bytes) {
    while (bytes > 0) {
        struct iovec there = {to, bytes}, here = {(void *)(uintptr_t)from, bytes};
        ssize_t n = process_vm_readv(getpid(), &there, 1, &here, 1, 0);
        if (n <= 0 && errno == EFAULT)
            return false;
        if (n <= 0) { // not allowed here
            memmove(to, from, bytes);
            n = (ssize_t)bytes;
        }
        to += n;
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool step_copy(struct op *op) {
    const struct copy_op *copy = (const struct copy_op *)op;
    const struct block *block = &copy->block;
    const char *from = copy->staged ? copy->staged : copy->from;
    bool legal =
        (!copy->to_ours || memory_range(copy->to, extent(block, block->to_pitch))) &&
        (!copy->from_ours || memory_range(copy->from, extent(block, block->from_pitch)));
    char *to = legal ? shadow(copy->to) : NULL;
    if (legal && from)
        from = shadow(from);
    for (size_t row = 0; row < block->rows && legal; row++) {
        char *at = to + row * block->to_pitch;
        const char *source = from ? from + row * block->from_pitch : NULL;
        if (copy->of_graph)
            legal = copy_from_host(at, source, block->width);
        else if (source)
            memmove(at, source, block->width);
        else
            memset(at, copy->value, block->width);
    }
    if (!legal)
        device_break(copy->device, cudaErrorIllegalAddress);
    return op->done = true;
}

static void drop_copy(struct op *op) {
    free(((struct copy_op *)op)->staged);
}

static struct op *another_copy(const struct op *from) {
    const struct copy_op *model = (const struct copy_op *)from;
    struct op *op = op_create(sizeof *model, step_copy), fresh = *op;
    struct copy_op *copy = (struct copy_op *)op;
    *copy = *model;
    copy->op = fresh;
    op->cost = model->op.cost;
    op->copy = another_copy;
    op->drop = drop_copy;
    if (model->staged) {
        size_t bytes = extent(&model->block, model->block.from_pitch);
        copy->staged = base_grow(NULL, bytes);
        memcpy(copy->staged, model->staged, bytes);
    }
    return op;
}

static bool on_host(const struct memory *memory) {
    return !memory || memory->kind == MEMORY_PINNED;
}

/* What way the bytes go, for the modelled clock. */
static enum clock_way way_of(const struct memory *to, const struct memory *from) {
    if (on_host(to) || on_host(from))
        return WAY_HOST;
    if (!to->opened != !from->opened) // one of them is another process's
        return WAY_PEER;
    if (to->device == from->device)
        return WAY_WITHIN;
    return device_reaches(to->device, from->device) ? WAY_PEER : WAY_STAGED;
}

static struct op *copy_op(void *to, const void *from, struct block block, int value,
                          const struct stream *stream) {
    struct memory *target = memory_find(to), *source = from ? memory_find(from) : NULL;
    struct copy_op model = {.to = to,
                            .from = from,
                            .to_ours = target,
                            .from_ours = source,
                            .block = block,
                            .value = value,
                            .device = stream->device};
    if (clock_on)
        model.op.cost = clock_of_copy(from ? way_of(target, source) : WAY_SET,
                                      block.width * block.rows);
    return another_copy(&model.op);
}

/* Whether a device may use all of it: of pageable memory only the host knows. */
static bool usable(const void *start, size_t bytes) {
    return !memory_find(start) || memory_range(start, bytes);
}

/* Whether `kind` agrees with where the addresses lie. */
static cudaError_t check_direction(const struct memory *to, const struct memory *from,
                                   enum cudaMemcpyKind kind) {
    bool to_host = !to || to->kind != MEMORY_DEVICE;
    bool from_host = !from || from->kind != MEMORY_DEVICE;
    switch (kind) {
    case cudaMemcpyHostToHost:
        return to_host && from_host ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyHostToDevice:
        return to && from_host ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToHost:
        return to_host && from ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToDevice:
        return to && from ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDefault: return cudaSuccess;
    }
    return cudaErrorInvalidMemcpyDirection;
}

static cudaError_t copy(void *to, const void *from, struct block block,
                        enum cudaMemcpyKind kind, struct stream *stream, bool wait) {
    cudaError_t error = stream_in_use(stream);
    const size_t bytes = extent(&block, block.from_pitch);
    if (error != cudaSuccess)
        return error;
    if (block.width > block.to_pitch || block.width > block.from_pitch)
        return cudaErrorInvalidPitchValue;
    struct memory *target = memory_find(to), *source = memory_find(from);
    error = bytes == 0 ? cudaSuccess : check_direction(target, source, kind);
    if (error == cudaSuccess && bytes > 0 &&
        (!to || !from || !usable(to, extent(&block, block.to_pitch)) ||
         !usable(from, bytes)))
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    struct op *op = copy_op(to, from, block, 0, stream);
    // Pageable host memory is read before the call returns; in a graph, when that is
    // launched, as an H200 does.
    ((struct copy_op *)op)->of_graph = !source && bytes && stream->capture;
    if (!source && bytes && !on_host(target) && !stream->capture) {
        ((struct copy_op *)op)->staged = base_grow(NULL, bytes);
        memcpy(((struct copy_op *)op)->staged, from, bytes);
    }
    // A copy that waits also waits for the default streams of the other devices it
    // touches.
    const int devices[] = {target ? target->device : stream->device,
                           source ? source->device : stream->device};
    bool both_on_device = !on_host(target) && !on_host(source);
    bool between_hosts = on_host(target) && on_host(source);
    // From pageable memory to the device, the copy begins when the stream is done with
    // all before it, and the data need not have arrived when the call returns. An MPI
    // that takes device memory sees to it that it finds what cudaMemcpy has brought.
    bool early = !source && target && target->kind == MEMORY_DEVICE &&
                 !(wait && standin_cuda_aware());
    bool captured = stream->capture, into_pageable = !target;
    struct mark before = stream_end(stream);
    for (int i = 0; wait && i < 2; i++)
        if (devices[i] != stream->device)
            wait_for(stream_end(legacy_stream(devices[i])));
    if (wait && early)
        wait_for(before);
    op_enqueue(op, stream);
    // The host may read and write managed memory as soon as a copy that waits is over.
    bool managed = (target && target->kind == MEMORY_MANAGED) ||
                   (source && source->kind == MEMORY_MANAGED);
    if (captured || early ||
        !(into_pageable || between_hosts || (wait && (managed || !both_on_device))))
        return cudaSuccess;
    int device = stream->device;
    wait_for(stream_end(stream));
    return device_broken(device);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind) {
    CUDA_CALL;
    return cuda_error(
        copy(to, from, in_a_row(bytes), kind, legacy_stream(device_now()), true));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    CUDA_CALL;
    return cuda_error(
        copy(to, from, in_a_row(bytes), kind, stream_of(stream, device_now()), false));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t rows, enum cudaMemcpyKind kind) {
    CUDA_CALL;
    const struct block block = {width, rows, to_pitch, from_pitch};
    return cuda_error(copy(to, from, block, kind, legacy_stream(device_now()), true));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
    CUDA_CALL;
    const struct block block = {width, rows, to_pitch, from_pitch};
    return cuda_error(
        copy(to, from, block, kind, stream_of(stream, device_now()), false));
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
    CUDA_CALL;
    if (device_check(to_device) != cudaSuccess ||
        device_check(from_device) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    // In order with all work, past and to come, of the three devices.
    device_wait(to_device);
    device_wait(from_device);
    device_wait(device_now());
    struct stream *stream = legacy_stream(device_now());
    cudaError_t error = copy(to, from, in_a_row(bytes), cudaMemcpyDefault, stream, true);
    wait_for(stream_end(stream));
    return cuda_error(error);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream) {
    CUDA_CALL;
    if (device_check(to_device) != cudaSuccess ||
        device_check(from_device) != cudaSuccess)
        return cuda_error(cudaErrorInvalidDevice);
    return cuda_error(copy(to, from, in_a_row(bytes), cudaMemcpyDefault,
                           stream_of(stream, device_now()), false));
}

static cudaError_t set(void *to, int value, struct block block, struct stream *stream) {
    if (block.width == 0 || block.rows == 0)
        return stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
    cudaError_t error = stream_in_use(stream);
    if (error != cudaSuccess)
        return error;
    if (block.width > block.to_pitch)
        return cudaErrorInvalidPitchValue;
    if (!memory_range(to, extent(&block, block.to_pitch)))
        return cudaErrorInvalidValue;
    op_enqueue(copy_op(to, NULL, block, value, stream), stream);
    return cudaSuccess;
}

/* Asynchronous to the host only for device memory. */
static cudaError_t set_now(void *to, int value, struct block block) {
    struct stream *stream = legacy_stream(device_now());
    cudaError_t error = set(to, value, block, stream);
    const struct memory *memory = memory_find(to);
    if (error != cudaSuccess || !memory || memory->kind == MEMORY_DEVICE)
        return error;
    wait_for(stream_end(stream));
    return device_broken(device_now());
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    CUDA_CALL;
    return cuda_error(set_now(to, value, in_a_row(bytes)));
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t rows) {
    CUDA_CALL;
    return cuda_error(set_now(to, value, (struct block){width, rows, pitch, width}));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    CUDA_CALL;
    return cuda_error(set(to, value, in_a_row(bytes), stream_of(stream, device_now())));
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width,
                              size_t rows, cudaStream_t stream) {
    CUDA_CALL;
    const struct block block = {width, rows, pitch, width};
    return cuda_error(set(to, value, block, stream_of(stream, device_now())));
}

/* --- Streams ---------------------------------------------------------------------- */

static cudaError_t create_stream(cudaStream_t *out, unsigned int flags, int priority) {
    cudaError_t error = device_check(device_now());
    if (!out || flags & ~(unsigned)cudaStreamNonBlocking)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *out = (cudaStream_t)stream_create(device_now(), flags == cudaStreamDefault);
    if (error == cudaSuccess) // said, and no more: one processor serves all
        ((struct stream *)*out)->priority = priority > 0    ? 0
                                            : priority < -5 ? -5
                                                            : priority;
    return cuda_error(error);
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    CUDA_CALL;
    return create_stream(out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
    CUDA_CALL;
    return create_stream(out, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                         int priority) {
    CUDA_CALL;
    return create_stream(out, flags, priority);
}

/* What a question about a stream is answered with: nothing is waited for. */
#define STREAM_SAYS(name, type, value)                           \
    cudaError_t name(cudaStream_t handle, type *out) {           \
        CUDA_CALL;                                               \
        struct stream *stream = stream_of(handle, device_now()); \
        if (!stream)                                             \
            return cuda_error(cudaErrorInvalidResourceHandle);   \
        if (!out)                                                \
            return cuda_error(cudaErrorInvalidValue);            \
        *out = value;                                            \
        return cudaSuccess;                                      \
    }
STREAM_SAYS(cudaStreamGetPriority, int, stream->priority)
STREAM_SAYS(cudaStreamGetFlags, unsigned int,
            stream->blocking || stream->legacy ? cudaStreamDefault
                                               : cudaStreamNonBlocking)

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    CUDA_CALL;
    bool own = handle && handle != cudaStreamLegacy && handle != cudaStreamPerThread;
    struct stream *stream = own ? stream_of(handle, device_now()) : NULL;
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    capture_spoil(stream);
    stream_retire(stream);
    return cudaSuccess;
}

/* The stream for a call that asks how far it is; that may not be done to one which is
 * captured. */
static cudaError_t stream_to_ask(cudaStream_t handle, struct stream **out) {
    struct stream *stream = *out = stream_of(handle, device_now());
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (stream->capture) {
        capture_spoil(stream);
        return cudaErrorStreamCaptureUnsupported;
    }
    return capture_in_the_way(stream) ? cudaErrorStreamCaptureImplicit
           : capture_forbids()        ? cudaErrorStreamCaptureUnsupported
                                      : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    CUDA_CALL;
    struct stream *stream;
    cudaError_t error = stream_to_ask(handle, &stream);
    if (error != cudaSuccess)
        return cuda_error(error);
    int device = stream->device;
    wait_for_stream(stream);
    return cuda_error(device_broken(device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    CUDA_CALL;
    struct stream *stream;
    cudaError_t error = stream_to_ask(handle, &stream);
    if (error != cudaSuccess)
        return cuda_error(error);
    int device = stream->device;
    if (!poll_for_stream(stream))
        return cudaErrorNotReady;
    return cuda_error(device_broken(device));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                               void *argument) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    cudaError_t error = stream_in_use(stream);
    if (error == cudaSuccess && !function)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        op_enqueue(hostfunc_op(function, argument), stream);
    return cuda_error(error);
}
