/*
 * cuda.c: the CUDA runtime's functions: memory, copies, streams, events, host functions,
 * kernels.
 *
 * What waits for what stands in CUDA Runtime API, "API synchronization behavior" and
 * "Stream synchronization behavior". An operation is told before it is called: what it
 * uses may be wrong, and the call may block. What is made is told when it is there.
 */
#include "answer.h"
#include "comms.h"
#include "graphs.h"
#include "pages.h"
#include "registered.h"
#include "start.h"
#include "timeline.h"

#include <stdlib.h>

/* --- Errors --------------------------------------------------------------------- */

static void looked(void) {
    judge_looked(front_in());
    front_out();
}

cudaError_t cudaGetLastError(void) {
    FRONT_PASS(cudaGetLastError);
    looked();
    return CALL(BELOW(cudaGetLastError));
}

cudaError_t cudaPeekAtLastError(void) {
    FRONT_PASS(cudaPeekAtLastError);
    looked();
    return CALL(BELOW(cudaPeekAtLastError));
}

const char *cudaGetErrorName(cudaError_t error) {
    FRONT_PASS(cudaGetErrorName, error);
    looked();
    return CALL(BELOW(cudaGetErrorName), error);
}

const char *cudaGetErrorString(cudaError_t error) {
    FRONT_PASS(cudaGetErrorString, error);
    looked();
    return CALL(BELOW(cudaGetErrorString), error);
}

/* --- Memory --------------------------------------------------------------------- */

/* Where the program's allocations start; for cudaDeviceReset. */
struct allocation {
    int device;
    bool host;
    unsigned opened; // how often besides the first time, by cudaIpcOpenMemHandle
};
static struct table allocations;

static cudaError_t made(cudaError_t error, void **pointer, size_t bytes,
                        enum judge_memory_kind kind, struct judge_at at) {
    if (error != cudaSuccess || !*pointer || bytes == 0)
        return answer(error, at);
    struct allocation *allocation = front_alloc(sizeof *allocation);
    *allocation = (struct allocation){
        current_device(), kind == JUDGE_PINNED || kind == JUDGE_HOST_REGISTERED, 0};
    if (timeline_on)
        timeline_device();
    struct judge *j = front_in();
    if (kind == JUDGE_PINNED || kind == JUDGE_MANAGED)
        pages_made(*pointer, bytes);
    free(table_get(&allocations, *pointer));
    table_put(&allocations, *pointer, allocation);
    judge_memory_made(j, *pointer, bytes, kind, allocation->device, -1, at);
    front_out();
    return error;
}

/* Whether an allocation of one of these kinds starts there: a call that is for others
 * fails, and nothing is gone. */
enum {
    FREED = 1 << JUDGE_DEVICE | 1 << JUDGE_POOL | 1 << JUDGE_MANAGED, // by cudaFree
    OF_HOST = 1 << JUDGE_PINNED,
    OF_PROGRAM = 1 << JUDGE_HOST_REGISTERED,
    OPENED = 1 << JUDGE_PEER
};
static bool known(struct judge *j, const void *pointer, int kinds,
                  struct judge_memory *memory) {
    return judge_memory_find(j, pointer, memory) && memory->start == pointer &&
           kinds >> memory->kind & 1;
}

static void forget(struct judge *j, const void *pointer, int stream, struct judge_at at) {
    pages_gone(pointer);
    registered_freed(j, pointer, at);
    judge_memory_freed(j, pointer, stream, at);
    free(table_get(&allocations, pointer));
    table_remove(&allocations, pointer);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    ENTER(cudaMalloc, pointer, bytes);
    return made(CALL(BELOW(cudaMalloc), pointer, bytes), pointer, bytes, JUDGE_DEVICE,
                at);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    ENTER(cudaMallocHost, pointer, bytes);
    return made(CALL(BELOW(cudaMallocHost), pointer, bytes), pointer, bytes, JUDGE_PINNED,
                at);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    ENTER(cudaHostAlloc, pointer, bytes, flags);
    return made(CALL(BELOW(cudaHostAlloc), pointer, bytes, flags), pointer, bytes,
                JUDGE_PINNED, at);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
    ENTER(cudaMallocManaged, pointer, bytes, flags);
    return made(CALL(BELOW(cudaMallocManaged), pointer, bytes, flags), pointer, bytes,
                JUDGE_MANAGED, at);
}

/* Told before: as soon as it is free below, another thread may be given the same address.
 */
static cudaError_t release(cudaError_t (*below)(void *), void *pointer, int kinds,
                           bool waits, struct judge_at at) {
    struct judge_memory memory;
    size_t behind = OVER_STANDIN ? standin_written_behind(pointer) : 0;
    struct judge *j = front_in();
    if (!known(j, pointer, kinds, &memory) || nccl_memory_is(pointer)) {
        front_out();
        return answer(CALL(below, pointer), at);
    }
    if (behind)
        judge_memory_overrun(j, pointer, behind, at);
    forget(j, pointer, -1, at);
    bool told = !group_is_open(); // it does not wait for what a group still holds back
    if (told)
        judge_wait_device(j, memory.device, at);
    front_out();
    struct timeline_wait wait = {.at = at,
                                 .on_device = true,
                                 .perhaps = true,
                                 .device = memory.device,
                                 .world = -1};
    cudaError_t error =
        told && waits ? HOST_WAITS(&wait, CALL(below, pointer)) : CALL(below, pointer);
    return told ? wait_over(error, waits, at) : answer(error, at);
}

cudaError_t cudaFree(void *pointer) {
    ENTER(cudaFree, pointer);
    return release(BELOW(cudaFree), pointer, FREED, true, at);
}

cudaError_t cudaFreeHost(void *pointer) {
    ENTER(cudaFreeHost, pointer);
    return release(BELOW(cudaFreeHost), pointer, OF_HOST, false, at);
}

static cudaError_t made_in_stream(cudaError_t error, void **pointer, size_t bytes,
                                  cudaStream_t stream, struct judge_at at) {
    if (error != cudaSuccess || !*pointer || bytes == 0)
        return answer(error, at);
    struct allocation *allocation = front_alloc(sizeof *allocation);
    allocation->device = current_device();
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    free(table_get(&allocations, *pointer));
    table_put(&allocations, *pointer, allocation);
    judge_memory_made(j, *pointer, bytes, JUDGE_POOL, allocation->device, number, at);
    front_out();
    return error;
}

static cudaError_t malloc_async(void **pointer, size_t bytes, cudaStream_t stream,
                                struct judge_at at) {
    return made_in_stream(CALL(BELOW(cudaMallocAsync), pointer, bytes, stream), pointer,
                          bytes, stream, at);
}
ON_STREAM(cudaMallocAsync, malloc_async,
          (void **pointer, size_t bytes, cudaStream_t stream), pointer, bytes, stream)

static cudaError_t free_async(void *pointer, cudaStream_t stream, struct judge_at at) {
    struct judge_memory memory;
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    if (number >= 0 && known(j, pointer, FREED, &memory))
        forget(j, pointer, number, at);
    front_out();
    return answer(CALL(BELOW(cudaFreeAsync), pointer, stream), at);
}
ON_STREAM(cudaFreeAsync, free_async, (void *pointer, cudaStream_t stream), pointer,
          stream)

#if !OVER_STANDIN || defined(CUDA_IPC_HANDLE_SIZE)
/* The memory of a handle is one in all processes. */
static void shares(const void *pointer, const cudaIpcMemHandle_t *handle) {
    uint64_t id = 0;
    for (size_t i = 0; i < sizeof handle->reserved; i++)
        id = id * UINT64_C(1099511628211) + (unsigned char)handle->reserved[i] + 1;
    struct judge *j = front_in();
    judge_memory_shared(j, pointer, id);
    front_out();
}

/* Other processes may write there. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
    ENTER(cudaIpcGetMemHandle, handle, pointer);
    judge_memory_open(front_in(), pointer);
    front_out();
    cudaError_t error = CALL(BELOW(cudaIpcGetMemHandle), handle, pointer);
    if (error == cudaSuccess)
        shares(pointer, handle);
    return answer(error, at);
}

/* How large another process's allocation is, the driver knows. */
static size_t bytes_at(const void *pointer) {
    if (OVER_STANDIN)
        return standin_opened_bytes(pointer);
    int (*range)(void **, size_t *, uintptr_t) = front_find("cuMemGetAddressRange_v2");
    void *start;
    size_t bytes;
    return range && CALL(range, &start, &bytes, (uintptr_t)pointer) == 0 &&
                   start == pointer
               ? bytes
               : 0;
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle,
                                 unsigned int flags) {
    ENTER(cudaIpcOpenMemHandle, pointer, handle, flags);
    cudaError_t error = CALL(BELOW(cudaIpcOpenMemHandle), pointer, handle, flags);
    size_t bytes = error == cudaSuccess ? bytes_at(*pointer) : 0;
    struct judge_memory memory;
    struct judge *j = front_in();
    bool again = error == cudaSuccess && known(j, *pointer, OPENED, &memory);
    struct allocation *allocation = again ? table_get(&allocations, *pointer) : NULL;
    if (allocation)
        allocation->opened++;
    front_out();
    if (allocation)
        return error;
    error = made(error, pointer, bytes, JUDGE_PEER, at);
    if (error == cudaSuccess)
        shares(*pointer, &handle);
    return error;
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
    ENTER(cudaIpcCloseMemHandle, pointer);
    struct judge_memory memory;
    struct judge *j = front_in();
    struct allocation *allocation =
        known(j, pointer, OPENED, &memory) ? table_get(&allocations, pointer) : NULL;
    bool stays = allocation && allocation->opened > 0;
    if (stays)
        allocation->opened--;
    front_out();
    if (stays)
        return answer(CALL(BELOW(cudaIpcCloseMemHandle), pointer), at);
    return release(BELOW(cudaIpcCloseMemHandle), pointer, OPENED, false, at);
}
#endif

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    ENTER(cudaMallocPitch, pointer, pitch, width, height);
    cudaError_t error = CALL(BELOW(cudaMallocPitch), pointer, pitch, width, height);
    return made(error, pointer, error == cudaSuccess ? *pitch * height : 0, JUDGE_DEVICE,
                at);
}

/* Its first and its last page have other bytes of the program's, too: none is closed. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
    ENTER(cudaHostRegister, pointer, bytes, flags);
    return made(CALL(BELOW(cudaHostRegister), pointer, bytes, flags), &pointer, bytes,
                JUDGE_HOST_REGISTERED, at);
}

cudaError_t cudaHostUnregister(void *pointer) {
    ENTER(cudaHostUnregister, pointer);
    return release(BELOW(cudaHostUnregister), pointer, OF_PROGRAM, false, at);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent) {
    ENTER(cudaMalloc3D, out, extent);
    cudaError_t error = CALL(BELOW(cudaMalloc3D), out, extent);
    if (error != cudaSuccess)
        return answer(error, at);
    return made(error, &out->ptr, out->pitch * extent.height * extent.depth, JUDGE_DEVICE,
                at);
}

static cudaError_t malloc_from_pool(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, struct judge_at at) {
    return made_in_stream(
        CALL(BELOW(cudaMallocFromPoolAsync), pointer, bytes, pool, stream), pointer,
        bytes, stream, at);
}
ON_STREAM(cudaMallocFromPoolAsync, malloc_from_pool,
          (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
          pointer, bytes, pool, stream)

#if !OVER_STANDIN
cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data,
                                     void *pointer) {
    ENTER(cudaMemPoolExportPointer, data, pointer);
    judge_memory_open(front_in(), pointer);
    front_out();
    return answer(CALL(BELOW(cudaMemPoolExportPointer), data, pointer), at);
}
#endif

/* --- Copies --------------------------------------------------------------------- */

enum place { UNKNOWN, PAGEABLE, PINNED, MANAGED, DEVICE };

/* One side of a copy. */
struct side {
    struct rows rows;
    bool says_device; // the program does
    enum place place;
    int device; // that the memory belongs to
};

struct copy {
    struct side to, from; // a set has no `from`: its place is UNKNOWN
    cudaStream_t stream;
    bool asynchronous; // by the function's name
    enum { NO, BEFORE, PERHAPS, ALL } waits;
    int number;
};

static struct side linear(const void *start, size_t bytes, bool says_device) {
    return (struct side){{start, bytes, bytes, 1, 0}, says_device, UNKNOWN, 0};
}

static bool to_device(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

static bool from_device(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static bool find_place(struct judge *j, struct side *side) {
    struct judge_memory memory;
    if (side->place != UNKNOWN)
        return true;
    if (!side->rows.start || !judge_memory_find(j, side->rows.start, &memory))
        return false;
    bool pinned = memory.kind == JUDGE_PINNED || memory.kind == JUDGE_HOST_REGISTERED;
    side->place = pinned ? PINNED : memory.kind == JUDGE_MANAGED ? MANAGED : DEVICE;
    side->device = memory.device;
    return true;
}

static void ask_place(struct side *side) {
    struct cudaPointerAttributes attributes;
    if (side->place != UNKNOWN)
        return;
    side->place = PAGEABLE;
    if (!side->rows.start || CALL(BELOW(cudaPointerGetAttributes), &attributes,
                                  side->rows.start) != cudaSuccess)
        return;
    side->device = attributes.device;
    if (attributes.type == cudaMemoryTypeDevice)
        side->place = DEVICE;
    else if (attributes.type == cudaMemoryTypeManaged)
        side->place = MANAGED;
    else if (attributes.type == cudaMemoryTypeHost)
        side->place = PINNED;
}

/* True if something is wrong with what it would read and write. */
static bool tell_copy(struct judge *j, const struct copy *copy, struct judge_at at) {
    struct judge_range ranges[2 * MOST_ROWS];
    int n = 0;
    bool set = copy->from.place == UNKNOWN;
    enum rows_told to = add_rows(&copy->to.rows, true, copy->to.says_device, ranges, &n),
                   from = set ? ALL_ROWS
                              : add_rows(&copy->from.rows, false, copy->from.says_device,
                                         ranges, &n);
    if (to == NO_ROWS || from == NO_ROWS)
        return judge_op(j, copy->number, NULL, 0, JUDGE_KERNEL, at) && front_checks;
    open_rows(j, &copy->to.rows, to);
    open_rows(j, &copy->from.rows, from);
    enum judge_op_kind kind = set ? JUDGE_SET
                              : copy->to.rows.height == 1 && copy->from.rows.height == 1
                                  ? JUDGE_COPY
                                  : JUDGE_COPY_ROWS;
    return judge_op(j, copy->number, ranges, n, kind, at) && front_checks;
}

/* Memory of the host that is not pinned is copied by the driver through memory of its
 * own. From there to a device the source is read before the call returns, but the data
 * may still be on its way. */
static void find_waits(struct copy *copy) {
    bool set = copy->from.place == UNKNOWN;
    bool to_host = copy->to.place == PAGEABLE || copy->to.place == PINNED;
    bool from_host = copy->from.place == PAGEABLE || copy->from.place == PINNED;
    bool pageable = copy->to.place == PAGEABLE || copy->from.place == PAGEABLE;
    bool managed = copy->to.place == MANAGED || copy->from.place == MANAGED;
    if (set)
        copy->waits = !copy->asynchronous && (to_host || managed) ? ALL : NO;
    else if (copy->asynchronous && pageable && stream_capturing(copy->stream))
        copy->waits = NO;
    else if (copy->to.place == PAGEABLE || (to_host && from_host))
        copy->waits = ALL;
    else if (copy->asynchronous)
        copy->waits = copy->from.place == PAGEABLE && !group_is_open() ? PERHAPS : NO;
    else if (copy->from.place == PAGEABLE && copy->to.place == DEVICE)
        copy->waits = BEFORE;
    else
        copy->waits = to_host || from_host || managed ? ALL : NO;
}

static bool copy_begins(struct copy *copy, struct judge_at at) {
    bool set = !copy->from.rows.start && copy->from.place == UNKNOWN;
    struct judge *j = front_in_stream(copy->stream, -1, &copy->number);
    if (copy->number < 0 || copy->to.rows.width == 0) {
        front_out();
        copy->number = -1;
        return true;
    }
    bool found = find_place(j, &copy->to);
    found = (set || find_place(j, &copy->from)) && found;
    if (!found) {
        front_out();
        ask_place(&copy->to);
        if (!set)
            ask_place(&copy->from);
        find_waits(copy);
        j = front_in();
    } else {
        find_waits(copy);
    }
    bool wrong = false;
    if (copy->waits == BEFORE || copy->waits == PERHAPS) {
        judge_wait_stream(j, copy->number, at);
        wrong = tell_copy(j, copy, at);
        if (wrong)
            judge_wait_end(j, false);
    } else {
        wrong = tell_copy(j, copy, at);
        if (copy->waits == ALL && !wrong)
            judge_wait_stream(j, copy->number, at);
    }
    front_out();
    return !wrong;
}

/* The default stream of another device whose memory is copied: such a copy waits for it,
 * too. */
static void other_device(const struct side *side, struct judge_at at) {
    int number;
    if (side->place == UNKNOWN || side->place == PAGEABLE ||
        side->device == current_device())
        return;
    struct judge *j = front_in_stream(cudaStreamLegacy, side->device, &number);
    judge_wait_stream(j, number, at);
    judge_wait_end(j, true);
    front_out();
}

static cudaError_t copy_ends(struct copy *copy, cudaError_t error, struct judge_at at) {
    if (copy->number < 0 || copy->waits == NO)
        return answer(error, at);
    error = wait_over(error, copy->waits != PERHAPS, at);
    if (error == cudaSuccess && !copy->asynchronous) {
        other_device(&copy->to, at);
        other_device(&copy->from, at);
    }
    return error;
}

static const char *copy_name(const struct copy *copy) {
    static const char *const names[2][2] = {
        {"copy host to host", "copy host to device"},
        {"copy device to host", "copy device to device"}};
    const struct side *to = &copy->to, *from = &copy->from;
    bool set = from->place == UNKNOWN;
    if (set)
        return "set";
    return names[from->place == DEVICE || from->place == MANAGED]
                [to->place == DEVICE || to->place == MANAGED];
}

static struct timeline_op *copy_op(const struct copy *copy, struct judge_at at,
                                   struct timeline_op *out) {
    const struct rows *rows = &copy->to.rows;
    *out = (struct timeline_op){.name = copy_name(copy),
                                .at = at,
                                .waits = copy->waits != NO,
                                .perhaps = copy->waits == PERHAPS,
                                .done = copy->waits == ALL,
                                .bytes = rows->width * rows->height};
    return out;
}

/* Tells of the copy, makes it by `call`, and tells that it was made. */
#define COPY(copy, call)                                                         \
    ({                                                                           \
        struct timeline_op op;                                                   \
        cudaError_t copied = cudaErrorInvalidValue;                              \
        if (copy_begins(copy, at)) {                                             \
            copied = (copy)->number < 0 ? (call)                                 \
                                        : ON_TIMELINE(copy_op(copy, at, &op),    \
                                                      (copy)->stream, -1, call); \
            copied = copy_ends(copy, copied, at);                                \
        }                                                                        \
        copied;                                                                  \
    })

/* A function that copies or sets, from what it reads and writes: one without a stream,
 * and its kin for programs whose stream 0 is the thread's own (_ptds); one with a stream,
 * and its kin. */
#define COPIES(name, shown, in_stream, is_asynchronous, to_side, from_side, ...) \
    ENTER_AS(shown, name, __VA_ARGS__);                                          \
    struct copy copy = {.to = to_side,                                           \
                        .from = from_side,                                       \
                        .stream = in_stream,                                     \
                        .asynchronous = is_asynchronous};                        \
    return COPY(&copy, CALL(BELOW(name), __VA_ARGS__))

#define PLAIN_COPY(name, to_side, from_side, parameters, ...)                          \
    cudaError_t name parameters {                                                      \
        COPIES(name, #name, cudaStreamLegacy, false, to_side, from_side, __VA_ARGS__); \
    }
#define PLAIN_COPY_ASYNC(name, to_side, from_side, parameters, ...)         \
    cudaError_t name parameters {                                           \
        COPIES(name, #name, stream, true, to_side, from_side, __VA_ARGS__); \
    }
#if !OVER_STANDIN
#define COPY_FUNCTION(name, to_side, from_side, parameters, ...)                   \
    PLAIN_COPY(name, to_side, from_side, parameters, __VA_ARGS__)                  \
    PUBLIC cudaError_t name##_ptds parameters;                                     \
    cudaError_t name##_ptds parameters {                                           \
        COPIES(name##_ptds, #name, cudaStreamPerThread, false, to_side, from_side, \
               __VA_ARGS__);                                                       \
    }
#define COPY_FUNCTION_ASYNC(name, to_side, from_side, parameters, ...)                   \
    PLAIN_COPY_ASYNC(name, to_side, from_side, parameters, __VA_ARGS__)                  \
    PUBLIC cudaError_t name##_ptsz parameters;                                           \
    cudaError_t name##_ptsz parameters {                                                 \
        COPIES(name##_ptsz, #name, stream ? stream : cudaStreamPerThread, true, to_side, \
               from_side, __VA_ARGS__);                                                  \
    }
#else
#define COPY_FUNCTION PLAIN_COPY
#define COPY_FUNCTION_ASYNC PLAIN_COPY_ASYNC
#endif
#define NOTHING ((struct side){.place = UNKNOWN})

COPY_FUNCTION(cudaMemcpy, linear(to, bytes, to_device(kind)),
              linear(from, bytes, from_device(kind)),
              (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind), to,
              from, bytes, kind)
COPY_FUNCTION_ASYNC(cudaMemcpyAsync, linear(to, bytes, to_device(kind)),
                    linear(from, bytes, from_device(kind)),
                    (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                     cudaStream_t stream),
                    to, from, bytes, kind, stream)
COPY_FUNCTION(cudaMemset, linear(to, bytes, true), NOTHING,
              (void *to, int value, size_t bytes), to, value, bytes)
COPY_FUNCTION_ASYNC(cudaMemsetAsync, linear(to, bytes, true), NOTHING,
                    (void *to, int value, size_t bytes, cudaStream_t stream), to, value,
                    bytes, stream)
PLAIN_COPY_ASYNC(cudaMemcpyPeerAsync, linear(to, bytes, true), linear(from, bytes, true),
                 (void *to, int to_device, const void *from, int from_device,
                  size_t bytes, cudaStream_t stream),
                 to, to_device, from, from_device, bytes, stream)

/* In order with all work, past and to come, of the devices: as if the host waited for it.
 */
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
    ENTER(cudaMemcpyPeer, to, to_device, from, from_device, bytes);
    const int devices[] = {current_device(), to_device, from_device};
    struct copy copy = {.to = linear(to, bytes, true), .from = linear(from, bytes, true)};
    struct judge *j = front_in();
    for (int i = 0; i < 3; i++) {
        judge_wait_device(j, devices[i], at);
        judge_wait_end(j, true);
    }
    front_out();
    if (!copy_begins(&copy, at))
        return cudaErrorInvalidValue;
    if (copy.waits == NO && copy.number >= 0) {
        copy.waits = ALL;
        judge_wait_stream(front_in(), copy.number, at);
        front_out();
    }
    struct timeline_op op;
    cudaError_t error =
        ON_TIMELINE(copy_op(&copy, at, &op), copy.stream, -1,
                    CALL(BELOW(cudaMemcpyPeer), to, to_device, from, from_device, bytes));
    return copy_ends(&copy, error, at);
}

static struct side pitched(const void *start, size_t pitch, size_t width, size_t height,
                           bool says_device) {
    return (struct side){
        {start, pitch, height ? width : 0, height, 0}, says_device, UNKNOWN, 0};
}

COPY_FUNCTION(cudaMemcpy2D, pitched(to, tpitch, width, height, to_device(kind)),
              pitched(from, fpitch, width, height, from_device(kind)),
              (void *to, size_t tpitch, const void *from, size_t fpitch, size_t width,
               size_t height, enum cudaMemcpyKind kind),
              to, tpitch, from, fpitch, width, height, kind)
COPY_FUNCTION_ASYNC(cudaMemcpy2DAsync,
                    pitched(to, tpitch, width, height, to_device(kind)),
                    pitched(from, fpitch, width, height, from_device(kind)),
                    (void *to, size_t tpitch, const void *from, size_t fpitch,
                     size_t width, size_t height, enum cudaMemcpyKind kind,
                     cudaStream_t stream),
                    to, tpitch, from, fpitch, width, height, kind, stream)
COPY_FUNCTION(cudaMemset2D, pitched(to, pitch, width, height, true), NOTHING,
              (void *to, size_t pitch, int value, size_t width, size_t height), to, pitch,
              value, width, height)
COPY_FUNCTION_ASYNC(cudaMemset2DAsync, pitched(to, pitch, width, height, true), NOTHING,
                    (void *to, size_t pitch, int value, size_t width, size_t height,
                     cudaStream_t stream),
                    to, pitch, value, width, height, stream)
/* Of a shape that is not told; without an address it is an array or a symbol. */
static struct side somewhere(const void *start) {
    return (struct side){.rows = {.start = start, .width = 1},
                         .place = start ? UNKNOWN : DEVICE};
}

COPY_FUNCTION(cudaMemset3D, somewhere(to.ptr), NOTHING,
              (struct cudaPitchedPtr to, int value, struct cudaExtent extent), to, value,
              extent)
COPY_FUNCTION_ASYNC(cudaMemset3DAsync, somewhere(to.ptr), NOTHING,
                    (struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                     cudaStream_t stream),
                    to, value, extent, stream)
COPY_FUNCTION(cudaMemcpy3D, somewhere(p->dstPtr.ptr), somewhere(p->srcPtr.ptr),
              (const struct cudaMemcpy3DParms *p), p)
COPY_FUNCTION_ASYNC(cudaMemcpy3DAsync, somewhere(p->dstPtr.ptr), somewhere(p->srcPtr.ptr),
                    (const struct cudaMemcpy3DParms *p, cudaStream_t stream), p, stream)
#if !OVER_STANDIN
COPY_FUNCTION(cudaMemcpy3DPeer, somewhere(p->dstPtr.ptr), somewhere(p->srcPtr.ptr),
              (const struct cudaMemcpy3DPeerParms *p), p)
COPY_FUNCTION_ASYNC(cudaMemcpy3DPeerAsync, somewhere(p->dstPtr.ptr),
                    somewhere(p->srcPtr.ptr),
                    (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), p,
                    stream)
COPY_FUNCTION(cudaMemcpyToSymbol, somewhere(NULL), linear(from, bytes, from_device(kind)),
              (const void *symbol, const void *from, size_t bytes, size_t offset,
               enum cudaMemcpyKind kind),
              symbol, from, bytes, offset, kind)
COPY_FUNCTION_ASYNC(cudaMemcpyToSymbolAsync, somewhere(NULL),
                    linear(from, bytes, from_device(kind)),
                    (const void *symbol, const void *from, size_t bytes, size_t offset,
                     enum cudaMemcpyKind kind, cudaStream_t stream),
                    symbol, from, bytes, offset, kind, stream)
COPY_FUNCTION(cudaMemcpyFromSymbol, linear(to, bytes, to_device(kind)), somewhere(NULL),
              (void *to, const void *symbol, size_t bytes, size_t offset,
               enum cudaMemcpyKind kind),
              to, symbol, bytes, offset, kind)
COPY_FUNCTION_ASYNC(cudaMemcpyFromSymbolAsync, linear(to, bytes, to_device(kind)),
                    somewhere(NULL),
                    (void *to, const void *symbol, size_t bytes, size_t offset,
                     enum cudaMemcpyKind kind, cudaStream_t stream),
                    to, symbol, bytes, offset, kind, stream)
COPY_FUNCTION(cudaMemcpy2DToArray, somewhere(NULL),
              pitched(from, pitch, width, height, from_device(kind)),
              (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
               size_t width, size_t height, enum cudaMemcpyKind kind),
              to, x, y, from, pitch, width, height, kind)
COPY_FUNCTION(cudaMemcpy2DFromArray, pitched(to, pitch, width, height, to_device(kind)),
              somewhere(NULL),
              (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
               size_t width, size_t height, enum cudaMemcpyKind kind),
              to, pitch, from, x, y, width, height, kind)
#endif

/* --- Devices -------------------------------------------------------------------- */

cudaError_t cudaDeviceSynchronize(void) {
    ENTER(cudaDeviceSynchronize);
    int device = current_device();
    judge_wait_device(front_in(), device, at);
    front_out();
    struct timeline_wait wait = {
        .at = at, .on_device = true, .device = device, .world = -1};
    return wait_over(HOST_WAITS(&wait, CALL(BELOW(cudaDeviceSynchronize))), true, at);
}

static void events_reset(struct judge *j, int device);

cudaError_t cudaDeviceReset(void) {
    ENTER(cudaDeviceReset);
    int device = current_device();
    judge_wait_device(front_in(), device, at);
    front_out();
    if (timeline_on)
        timeline_device_reset();
    cudaError_t error = wait_over(CALL(BELOW(cudaDeviceReset)), true, at);
    if (error != cudaSuccess)
        return error;
    struct judge *j = front_in();
    for (size_t i = 0; i < allocations.size;) {
        const struct allocation *allocation = allocations.at[i].value;
        if (allocation && allocation->device == device && !allocation->host)
            forget(j, allocations.at[i].key, -1, at); // another may have moved here
        else
            i++;
    }
    streams_reset(j, device);
    events_reset(j, device);
    graphs_reset(j);
    comms_reset(j, device, at);
    front_out();
    return error;
}

/* Functions that are none of the judge's business, but may fail. (It is told of the
 * thread: one that has called CUDA may call it again.) */
#define PASSED_ON(name, parameters, ...)                   \
    cudaError_t name parameters {                          \
        ENTER(name, __VA_ARGS__);                          \
        front_thread();                                    \
        return answer(CALL(BELOW(name), __VA_ARGS__), at); \
    }
PASSED_ON(cudaDriverGetVersion, (int *version), version)
PASSED_ON(cudaRuntimeGetVersion, (int *version), version)
PASSED_ON(cudaSetDevice, (int device), device)
PASSED_ON(cudaGetDevice, (int *device), device)
PASSED_ON(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
          value, attribute, device)
PASSED_ON(cudaDeviceGetPCIBusId, (char *id, int bytes, int device), id, bytes, device)
PASSED_ON(cudaDeviceGetByPCIBusId, (int *device, const char *id), device, id)
PASSED_ON(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), least, greatest)
PASSED_ON(cudaDeviceCanAccessPeer, (int *can, int device, int peer), can, device, peer)
PASSED_ON(cudaDeviceGetP2PAttribute,
          (int *value, enum cudaDeviceP2PAttr attribute, int from, int to), value,
          attribute, from, to)
PASSED_ON(cudaMemGetInfo, (size_t * available, size_t *total), available, total)
PASSED_ON(cudaPointerGetAttributes,
          (struct cudaPointerAttributes * attributes, const void *pointer), attributes,
          pointer)
#if OVER_STANDIN // in CUDA 12 the headers give it another name
PASSED_ON(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device),
          properties, device)
#endif

static cudaError_t peer_access(cudaError_t error, int peer, bool on, struct judge_at at) {
    if (error == cudaSuccess) {
        int device = current_device();
        judge_peer_access(front_in(), device, peer, on);
        front_out();
    }
    return answer(error, at);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    ENTER(cudaDeviceEnablePeerAccess, peer, flags);
    return peer_access(CALL(BELOW(cudaDeviceEnablePeerAccess), peer, flags), peer, true,
                       at);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    ENTER(cudaDeviceDisablePeerAccess, peer);
    return peer_access(CALL(BELOW(cudaDeviceDisablePeerAccess), peer), peer, false, at);
}

/* Without a device it fails, and that is the answer. */
cudaError_t cudaGetDeviceCount(int *count) {
    FRONT_PASS(cudaGetDeviceCount, count);
    return CALL(BELOW(cudaGetDeviceCount), count);
}

/* --- Streams -------------------------------------------------------------------- */

static cudaError_t stream_there(cudaError_t error, const cudaStream_t *stream,
                                unsigned int flags, struct judge_at at) {
    if (error != cudaSuccess)
        return answer(error, at);
    int device = current_device();
    if (timeline_on)
        timeline_device();
    stream_made(front_in(), *stream, !(flags & cudaStreamNonBlocking), device, at);
    front_out();
    return error;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    ENTER(cudaStreamCreate, stream);
    return stream_there(CALL(BELOW(cudaStreamCreate), stream), stream, 0, at);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    ENTER(cudaStreamCreateWithFlags, stream, flags);
    return stream_there(CALL(BELOW(cudaStreamCreateWithFlags), stream, flags), stream,
                        flags, at);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
                                         int priority) {
    ENTER(cudaStreamCreateWithPriority, stream, flags, priority);
    return stream_there(
        CALL(BELOW(cudaStreamCreateWithPriority), stream, flags, priority), stream, flags,
        at);
}

/* Told before: the handle may come again as soon as it is given up. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    ENTER(cudaStreamDestroy, stream);
    stream_gone(front_in(), stream);
    comms_stream_gone(stream);
    front_out();
    return answer(CALL(BELOW(cudaStreamDestroy), stream), at);
}

/* --- Events --------------------------------------------------------------------- */

struct event {
    int number, device;
};
static struct table events;

static int announce_event(struct judge *j, cudaEvent_t handle, int device,
                          struct judge_at at) {
    struct event *event = front_alloc(sizeof *event);
    *event = (struct event){judge_event_made(j, device, at), device};
    free(table_get(&events, handle));
    table_put(&events, handle, event);
    return event->number;
}

/* An event that was not seen being made is another process's (cudaIpcOpenEventHandle), or
 * a library's. */
static int event_number(struct judge *j, cudaEvent_t handle, int device) {
    const struct event *event = table_get(&events, handle);
    const struct judge_at at = {"another library", 0};
    if (event)
        return event->number;
    judge_order_unseen(j);
    return announce_event(j, handle, device, at);
}

static void events_reset(struct judge *j, int device) {
    for (size_t i = 0; i < events.size;) {
        struct event *event = events.at[i].value;
        if (event && event->device == device) {
            judge_event_gone(j, event->number);
            free(event);
            table_remove(&events, events.at[i].key);
        } else {
            i++;
        }
    }
}

static cudaError_t event_there(cudaError_t error, const cudaEvent_t *event,
                               struct judge_at at) {
    if (error != cudaSuccess)
        return answer(error, at);
    int device = current_device();
    announce_event(front_in(), *event, device, at);
    front_out();
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    ENTER(cudaEventCreate, event);
    return event_there(CALL(BELOW(cudaEventCreate), event), event, at);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    ENTER(cudaEventCreateWithFlags, event, flags);
    return event_there(CALL(BELOW(cudaEventCreateWithFlags), event, flags), event, at);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    ENTER(cudaEventDestroy, handle);
    struct judge *j = front_in();
    struct event *event = table_get(&events, handle);
    if (event)
        judge_event_gone(j, event->number);
    table_remove(&events, handle);
    free(event);
    front_out();
    return answer(CALL(BELOW(cudaEventDestroy), handle), at);
}

static cudaError_t recorded(cudaError_t error, cudaEvent_t event, cudaStream_t stream,
                            struct judge_at at) {
    int number;
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    if (number >= 0)
        judge_record(j, event_number(j, event, 0), number, at);
    front_out();
    return error;
}

static cudaError_t event_record(cudaEvent_t event, cudaStream_t stream,
                                struct judge_at at) {
    return recorded(CALL(BELOW(cudaEventRecord), event, stream), event, stream, at);
}
ON_STREAM(cudaEventRecord, event_record, (cudaEvent_t event, cudaStream_t stream), event,
          stream)

static cudaError_t event_record_with_flags(cudaEvent_t event, cudaStream_t stream,
                                           unsigned int flags, struct judge_at at) {
    return recorded(CALL(BELOW(cudaEventRecordWithFlags), event, stream, flags), event,
                    stream, at);
}
ON_STREAM(cudaEventRecordWithFlags, event_record_with_flags,
          (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, stream,
          flags)

static cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event,
                                     unsigned int flags, struct judge_at at) {
    int number;
    cudaError_t error = CALL(BELOW(cudaStreamWaitEvent), stream, event, flags);
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    if (number >= 0)
        judge_stream_waits(j, number, event_number(j, event, 0), at);
    front_out();
    return error;
}
ON_STREAM(cudaStreamWaitEvent, stream_wait_event,
          (cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event,
          flags)

cudaError_t cudaEventQuery(cudaEvent_t event) {
    ENTER(cudaEventQuery, event);
    cudaError_t error = CALL(BELOW(cudaEventQuery), event);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return answer(error, at);
    struct judge *j = front_in();
    judge_poll_event(j, event_number(j, event, 0), error == cudaSuccess, at);
    front_out();
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    ENTER(cudaEventSynchronize, handle);
    struct judge *j = front_in();
    const struct event *event = table_get(&events, handle);
    if (event)
        judge_wait_event(j, event->number, at);
    front_out();
    struct timeline_wait wait = {.at = at, .device = -1, .world = -1};
    cudaError_t error = HOST_WAITS(&wait, CALL(BELOW(cudaEventSynchronize), handle));
    return event ? wait_over(error, true, at) : answer(error, at);
}

static cudaError_t elapsed(cudaError_t error, cudaEvent_t start, cudaEvent_t end,
                           struct judge_at at) {
    front_timed = true;
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in(); // there is a time between them: both have happened
    judge_poll_event(j, event_number(j, start, 0), true, at);
    judge_poll_event(j, event_number(j, end, 0), true, at);
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

/* --- Functions of the program that run on a stream ------------------------------ */

struct host_function {
    cudaHostFn_t function;
    cudaStreamCallback_t callback;
    void *data;
    int number;
    bool stays;                 // it belongs to a graph, which may be launched again
    struct host_function *next; // of those that stay
};
static struct host_function *that_stay;

static void run(struct host_function *f, cudaStream_t stream, cudaError_t status) {
    struct host_function function = *f;
    if (!f->stays)
        free(f);
    struct front_own before = front_function_begins();
    judge_host_function_begins(front_in(), function.number);
    front_out();
    runs_host_function = true;
    if (function.callback)
        function.callback(stream, status, function.data);
    else
        function.function(function.data);
    runs_host_function = false;
    judge_host_function_ends(front_in(), function.number);
    front_out();
    front_function_ends(before);
}

static void CUDART_CB run_function(void *f) {
    run(f, NULL, cudaSuccess);
}

/* Told before: it may run at once. NULL: the stream is none. */
static struct host_function *host_function(struct host_function like, cudaStream_t stream,
                                           struct judge_at at) {
    bool in_graph = stream_capturing(stream);
    int number;
    start_has_functions();
    struct judge *j = front_in_stream(stream, -1, &number);
    struct host_function *f = NULL;
    if (number >= 0) {
        f = front_alloc(sizeof *f);
        *f = like;
        f->number = judge_host_function(j, number, at);
        f->stays = in_graph;
        if (in_graph) {
            f->next = that_stay;
            that_stay = f;
        }
    }
    front_out();
    return f;
}

static cudaError_t launch_host_func(cudaStream_t stream, cudaHostFn_t function,
                                    void *data, struct judge_at at) {
    struct host_function *f =
        function
            ? host_function((struct host_function){.function = function, .data = data},
                            stream, at)
            : NULL;
    const struct timeline_op op = {.name = "host function", .at = at};
    cudaError_t error = ON_TIMELINE(&op, stream, -1,
                                    CALL(BELOW(cudaLaunchHostFunc), stream,
                                         f ? run_function : function, f ? f : data));
    if (error != cudaSuccess && f && !f->stays)
        free(f);
    return answer(error, at);
}
ON_STREAM(cudaLaunchHostFunc, launch_host_func,
          (cudaStream_t stream, cudaHostFn_t function, void *data), stream, function,
          data)

static void CUDART_CB run_callback(cudaStream_t stream, cudaError_t status, void *f) {
    run(f, stream, status);
}

static cudaError_t stream_add_callback(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void *data, unsigned int flags,
                                       struct judge_at at) {
    struct host_function *f =
        callback
            ? host_function((struct host_function){.callback = callback, .data = data},
                            stream, at)
            : NULL;
    const struct timeline_op op = {.name = "host function", .at = at};
    cudaError_t error =
        ON_TIMELINE(&op, stream, -1,
                    CALL(BELOW(cudaStreamAddCallback), stream,
                         f ? run_callback : callback, f ? f : data, flags));
    if (error != cudaSuccess && f && !f->stays)
        free(f);
    return answer(error, at);
}
ON_STREAM(cudaStreamAddCallback, stream_add_callback,
          (cudaStream_t stream, cudaStreamCallback_t callback, void *data,
           unsigned int flags),
          stream, callback, data, flags)

#if !OVER_STANDIN
/* --- Kernels -------------------------------------------------------------------- */

static void kernel(cudaStream_t stream, struct judge_at at) {
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    if (number >= 0)
        judge_op(j, number, NULL, 0, JUDGE_KERNEL, at);
    front_out();
}

/* Tells of a kernel, and launches it by `call`. */
#define KERNEL(stream, call)                                        \
    ({                                                              \
        const struct timeline_op op = {.name = "kernel", .at = at}; \
        kernel(stream, at);                                         \
        ON_TIMELINE(&op, stream, -1, call);                         \
    })

static cudaError_t launch_kernel(const void *function, dim3 grid, dim3 block,
                                 void **arguments, size_t shared, cudaStream_t stream,
                                 struct judge_at at) {
    return answer(KERNEL(stream, CALL(BELOW(cudaLaunchKernel), function, grid, block,
                                      arguments, shared, stream)),
                  at);
}
ON_STREAM(cudaLaunchKernel, launch_kernel,
          (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
           cudaStream_t stream),
          function, grid, block, arguments, shared, stream)

static cudaError_t launch_cooperative(const void *function, dim3 grid, dim3 block,
                                      void **arguments, size_t shared,
                                      cudaStream_t stream, struct judge_at at) {
    return answer(KERNEL(stream, CALL(BELOW(cudaLaunchCooperativeKernel), function, grid,
                                      block, arguments, shared, stream)),
                  at);
}
ON_STREAM(cudaLaunchCooperativeKernel, launch_cooperative,
          (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
           cudaStream_t stream),
          function, grid, block, arguments, shared, stream)

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
    ENTER(cudaLaunchKernelExC, config, function, arguments);
    if (!config)
        return answer(CALL(BELOW(cudaLaunchKernelExC), config, function, arguments), at);
    return answer(KERNEL(config->stream,
                         CALL(BELOW(cudaLaunchKernelExC), config, function, arguments)),
                  at);
}

PUBLIC cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config,
                                            const void *function, void **arguments);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config,
                                     const void *function, void **arguments) {
    ENTER_AS("cudaLaunchKernelExC", cudaLaunchKernelExC_ptsz, config, function,
             arguments);
    cudaStream_t stream = config ? config->stream : NULL;
    if (!stream)
        stream = cudaStreamPerThread;
    return answer(KERNEL(stream, CALL(BELOW(cudaLaunchKernelExC_ptsz), config, function,
                                      arguments)),
                  at);
}

/* What nvcc 13 makes of kernel<<<…>>>(…); its headers declare it for nvcc only. */
PUBLIC cudaError_t __cudaLaunchKernel(cudaKernel_t function, dim3 grid, dim3 block,
                                      void **arguments, size_t shared,
                                      cudaStream_t stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t function, dim3 grid, dim3 block,
                               void **arguments, size_t shared, cudaStream_t stream) {
    ENTER_AS("a kernel", __cudaLaunchKernel, function, grid, block, arguments, shared,
             stream);
    return answer(KERNEL(stream, CALL(BELOW(__cudaLaunchKernel), function, grid, block,
                                      arguments, shared, stream)),
                  at);
}

PUBLIC cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t function, dim3 grid, dim3 block,
                                           void **arguments, size_t shared,
                                           cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t function, dim3 grid, dim3 block,
                                    void **arguments, size_t shared,
                                    cudaStream_t stream) {
    ENTER_AS("a kernel", __cudaLaunchKernel_ptsz, function, grid, block, arguments,
             shared, stream);
    cudaStream_t own = stream ? stream : cudaStreamPerThread;
    return answer(KERNEL(own, CALL(BELOW(__cudaLaunchKernel_ptsz), function, grid, block,
                                   arguments, shared, stream)),
                  at);
}
#endif
