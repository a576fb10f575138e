/*
 * cuda_front.h: what the front's functions of CUDA share, and the kinds of cuda.list.
 */
#ifndef CUDA_FRONT_H
#define CUDA_FRONT_H

#include "answer.h"
#include "timeline.h"

/* cudaDeviceReset: what was made on the device is gone. */
void allocations_reset(struct judge *j, int device, struct judge_at at);
void events_reset(struct judge *j, int device);

/* The judge hears only that it failed, and of the thread: one that has called CUDA may
 * call it again. */
#define CUDA_PASSED(name, parameters, ...)                                \
    cudaError_t name parameters {                                         \
        if (front_passes())                                               \
            return BELOW(name)(__VA_ARGS__);                              \
        cudaError_t error = CALL(BELOW(name), __VA_ARGS__);               \
        if (error == cudaSuccess && front_saw_cuda && front_this_thread)  \
            return error;                                                 \
        return cuda_passed(error, __func__, __builtin_return_address(0)); \
    }

/* Memory is made: cuda_memory.c */
cudaError_t cuda_made(cudaError_t error, void **pointer, size_t bytes,
                      enum judge_memory_kind kind, struct judge_at at);
#define CUDA_MAKES(name, parameters, kind, ...)                                     \
    cudaError_t name parameters {                                                   \
        ENTER(name, __VA_ARGS__);                                                   \
        return cuda_made(CALL(BELOW(name), __VA_ARGS__), pointer, bytes, kind, at); \
    }

/* Streams and events: cuda_streams.c */
cudaError_t cuda_stream_there(cudaError_t error, const cudaStream_t *stream,
                              unsigned int flags, struct judge_at at);
cudaError_t cuda_event_there(cudaError_t error, const cudaEvent_t *event,
                             struct judge_at at);
#define CUDA_STREAM(name, parameters, flags, ...)                                  \
    cudaError_t name parameters {                                                  \
        ENTER(name, __VA_ARGS__);                                                  \
        return cuda_stream_there(CALL(BELOW(name), __VA_ARGS__), made, flags, at); \
    }
#define CUDA_EVENT(name, parameters, ...)                                  \
    cudaError_t name parameters {                                          \
        ENTER(name, __VA_ARGS__);                                          \
        return cuda_event_there(CALL(BELOW(name), __VA_ARGS__), made, at); \
    }

/* A graph becomes one that can be launched: cuda_graphs.c */
cudaError_t cuda_instantiated(cudaError_t error, const cudaGraphExec_t *executable,
                              cudaGraph_t graph, struct judge_at at);
#define CUDA_INSTANTIATES(name, parameters, ...)                                         \
    cudaError_t name parameters {                                                        \
        ENTER(name, __VA_ARGS__);                                                        \
        return cuda_instantiated(CALL(BELOW(name), __VA_ARGS__), executable, graph, at); \
    }

#if !OVER_STANDIN
/* Tells of a kernel, and launches it: cuda_functions.c */
struct timeline_op cuda_kernel(cudaStream_t stream, struct judge_at at);
#define KERNEL(name, shown, on, ...)                    \
    ENTER_AS(shown, name, __VA_ARGS__);                 \
    cudaStream_t its = on;                              \
    const struct timeline_op op = cuda_kernel(its, at); \
    return answer(ON_TIMELINE(&op, its, -1, CALL(BELOW(name), __VA_ARGS__)), at)
/* (The headers declare some for nvcc only.) */
#define CUDA_KERNEL(name, parameters, shown, on, ...)                               \
    PUBLIC cudaError_t name parameters;                                             \
    cudaError_t name parameters {                                                   \
        KERNEL(name, shown, on, __VA_ARGS__);                                       \
    }                                                                               \
    PUBLIC cudaError_t name##_ptsz parameters;                                      \
    cudaError_t name##_ptsz parameters {                                            \
        KERNEL(name##_ptsz, shown, (on) ? (on) : cudaStreamPerThread, __VA_ARGS__); \
    }

/* All have at most six arguments, each of which is a number or an address. */
void cuda_driver_called(const char *name);
#define CUDA_DRIVER(name)                                            \
    PUBLIC int name(long a, long b, long c, long d, long e, long f); \
    int name(long a, long b, long c, long d, long e, long f) {       \
        if (!NOT_THE_PROGRAM)                                        \
            cuda_driver_called(#name);                               \
        return BELOW(name) ? BELOW(name)(a, b, c, d, e, f) : 3;      \
    }
#endif

/* Copies: cuda_copies.c */

enum copy_place { UNKNOWN, PAGEABLE, PINNED, MANAGED, DEVICE };

/* One side of a copy. */
struct copy_side {
    struct rows rows;
    bool says_device; // the program does
    enum copy_place place;
    int device; // that the memory belongs to
};

struct copy {
    struct copy_side to, from; // a set has no `from`: its place is UNKNOWN
    cudaStream_t stream;
    bool asynchronous; // by the function's name
    enum { NO, BEFORE, PERHAPS, ALL } waits;
    int number;
};

struct copy_side copy_linear(const void *start, size_t bytes, bool says_device);
struct copy_side copy_pitched(const void *start, size_t pitch, size_t width,
                              size_t height, bool says_device);
/* Of a shape that is not told; without an address it is an array or a symbol. */
struct copy_side copy_somewhere(const void *start);
bool copies_to_device(enum cudaMemcpyKind kind);
bool copies_from_device(enum cudaMemcpyKind kind);

/* False: what it reads or writes is wrong, and it is not made. */
bool copy_begins(struct copy *copy, struct judge_at at);
cudaError_t copy_ends(struct copy *copy, cudaError_t error, struct judge_at at);

/* Of a timeline (front/timeline/notes.c). */
struct timeline_op *copy_op(const struct copy *copy, struct judge_at at,
                            struct timeline_op *out);

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

#define PLAIN_COPY(name, parameters, to_side, from_side, ...)                          \
    cudaError_t name parameters {                                                      \
        COPIES(name, #name, cudaStreamLegacy, false, to_side, from_side, __VA_ARGS__); \
    }
#define CUDA_PLAIN_COPY_ASYNC(name, parameters, to_side, from_side, ...)    \
    cudaError_t name parameters {                                           \
        COPIES(name, #name, stream, true, to_side, from_side, __VA_ARGS__); \
    }
#if !OVER_STANDIN
#define CUDA_COPY(name, parameters, to_side, from_side, ...)                       \
    PLAIN_COPY(name, parameters, to_side, from_side, __VA_ARGS__)                  \
    PUBLIC cudaError_t name##_ptds parameters;                                     \
    cudaError_t name##_ptds parameters {                                           \
        COPIES(name##_ptds, #name, cudaStreamPerThread, false, to_side, from_side, \
               __VA_ARGS__);                                                       \
    }
#define CUDA_COPY_ASYNC(name, parameters, to_side, from_side, ...)                       \
    CUDA_PLAIN_COPY_ASYNC(name, parameters, to_side, from_side, __VA_ARGS__)             \
    PUBLIC cudaError_t name##_ptsz parameters;                                           \
    cudaError_t name##_ptsz parameters {                                                 \
        COPIES(name##_ptsz, #name, stream ? stream : cudaStreamPerThread, true, to_side, \
               from_side, __VA_ARGS__);                                                  \
    }
#else
#define CUDA_COPY PLAIN_COPY
#define CUDA_COPY_ASYNC CUDA_PLAIN_COPY_ASYNC
#endif
#define NOTHING ((struct copy_side){.place = UNKNOWN})

#endif
